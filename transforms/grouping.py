"""Where a step needs all descriptions before it can go on."""

import apache_beam as beam


class GroupAll(beam.PTransform):
    """Brings all descriptions of a collection together as one list (order not given): they are small and few."""

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        return (
            elements
            | "OneKey" >> beam.Map(lambda element: (0, element))
            | "Group" >> beam.GroupByKey()
            | "List" >> beam.Map(lambda keyed: list(keyed[1]))
        )
