"""Dispatchers with which numba compiles kernels: what a kernel calls becomes machine code within it, and only there.

numba makes machine code of each function that it compiles, with a way to call it from Python, and links the optimised
code of what is called into each caller, where it is optimised again. Most kernels are called by kernels alone. Of
those only LLVM's intermediate code is made; the kernel that Python calls takes it from all that it reaches, and is
optimised and translated once. That halves the time that compiling takes, and the machine code that is kept.

A kernel that Python and other kernels call has both forms.
"""

from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.registry import CPUDispatcher


class PartLibrary(JITCodeLibrary):
    """The intermediate code of a kernel for the kernels that call it."""

    def finalize(self) -> None:
        """Leave optimising and translating to who links it."""
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            # One definition of several that are linked together is kept.
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = llvm.Linkage.linkonce_odr
            self._shared_module = self._final_module
        return self._shared_module


class EntryLibrary(JITCodeLibrary):
    """The machine code of a kernel that Python calls, and of all that it reaches.

    Nothing links it, so what is kept on disk is the machine code and the names that numba looks for in it.
    """

    def finalize(self) -> None:
        """Link what is reached, directly or not; then as numba does."""
        libraries = dict.fromkeys(self._linking_libraries)
        found = list(libraries)
        for library in found:  # grows meanwhile
            if isinstance(library, PartLibrary):
                found.extend(other for other in library._linking_libraries if other not in libraries)
                libraries |= dict.fromkeys(library._linking_libraries)
        self._linking_libraries = list(libraries)
        super().finalize()

    def _get_module_for_linking(self) -> Any:
        names = [f.name for f in self._final_module.functions if not f.is_declaration]
        return llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in names))


class _Pipeline(CompilerBase):
    """numba's own passes, into a library of ours."""

    library_class: type[JITCodeLibrary]

    def define_pipelines(self) -> list[Any]:
        self.state.library = self.library_class(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class _PartPipeline(_Pipeline):
    library_class = PartLibrary


class _EntryPipeline(_Pipeline):
    library_class = EntryLibrary


class _Part(CPUDispatcher):
    """A kernel as other kernels call it."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options | {"no_cpython_wrapper": True}, pipeline_class=_PartPipeline)
        self._compiler: Any
        self._compiler._customize_flags = _without_machine_code

    def compile(self, signature: Any) -> Any:
        """Make the intermediate code for a list of argument types; return its key in numba's table of functions."""
        arguments, _ = numba.core.sigutils.normalize_signature(signature)
        made: Any = self.overloads.get(arguments)
        if made is None:
            with self._compiling_counter:
                made = self._compiler.compile(arguments, None)
            made = made._replace(entry_point=object())
            self.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
            self.overloads[arguments] = made
        return made.entry_point


def _without_machine_code(flags: Any) -> Any:
    flags.no_compile = True
    return flags


class Kernel(CPUDispatcher):
    """A kernel as Python calls it."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=_EntryPipeline)
        self._part = _Part(function, options)

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_
