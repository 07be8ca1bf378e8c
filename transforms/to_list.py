"""All elements of a collection as one list."""

import apache_beam as beam


class ToList(beam.PTransform):
    """Gather all elements into one list, in no order: they are descriptions of files, so they are small and few.

    It is Beam's ToList, except that `--type_check_strictness=ALL_REQUIRED` takes it (Beam's has a CombineValues without
    types), and that nothing comes of nothing.
    """

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Return a collection of one list."""
        one = list[elements.element_type]
        return (
            elements
            | "OneKey" >> beam.Map(lambda element: (0, element)).with_output_types(tuple[int, elements.element_type])
            | "Group" >> beam.GroupByKey()
            | "List" >> beam.Map(lambda keyed: list(keyed[1])).with_output_types(one)
        )
