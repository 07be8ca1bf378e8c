"""The names of other libraries that maskmill uses though their documentation does not promise them.

A new version of a library may take one away without a word; `missing` says which, before anything else fails.
"""

import dataclasses
import dis
import importlib
import inspect
import platform
from importlib import metadata
from typing import Any


@dataclasses.dataclass(frozen=True)
class PrivateName:
    """A name that maskmill uses though nobody promises it.

    Attributes:
      library: the package that has it, as it is installed.
      seen_in: the library's version that it was last seen in.
      module: the module that it is in.
      name: the name there; behind a class and a dot a method, or an attribute that the class's methods set.
      used_for: what maskmill does with it.
    """

    library: str
    seen_in: str
    module: str
    name: str
    used_for: str


_BEAM = ("apache-beam", "2.77.0")
_NUMBA = ("numba", "0.68.1")
_KERAS = ("keras", "3.15.1")
_KERAS_HUB = ("keras-hub", "0.32.0")
_GRAIN = ("grain", "0.2.18")

_LOCAL_WORKERS = "starts the local runner's worker processes (pipelines/running/runner.py, local_worker.py)"
_LEAN_KERNELS = "compiles kernels without counting references (maskmill/kernels/compiler.py)"
_LINKING = "makes machine code only of kernels that Python calls (maskmill/kernels/dispatchers.py)"
_MACHINE_CODE = "keeps machine code on disk (maskmill/kernels/cache.py)"
_WEIGHTS = "finds a model's weights by the reference's names (training/model.py)"
_SIZES = "sets what keras-hub's layers fix (training/model.py)"

_ENCODER = "keras_hub.src.layers.modeling.transformer_encoder"
_MASKED_LM_HEAD = "keras_hub.src.layers.modeling.masked_lm_head"
_ATTENTION = "keras.src.layers.attention.multi_head_attention"
_OPTIMIZER = "keras.src.optimizers.base_optimizer"

PRIVATE_NAMES = (
    PrivateName(
        *_BEAM, "apache_beam.transforms.environments", "SubprocessSDKEnvironment.from_command_string", _LOCAL_WORKERS
    ),
    PrivateName(*_BEAM, "apache_beam.runners.worker.sdk_worker_main", "main", _LOCAL_WORKERS),
    PrivateName(
        *_BEAM,
        "apache_beam.pipeline",
        "Pipeline.local_tempdir",
        "leaves nothing in /tmp (pipelines/running/runner.py)",
    ),
    PrivateName(*_NUMBA, "numba.core.options", "DefaultOptions._nrt", _LEAN_KERNELS),
    PrivateName(*_NUMBA, "numba.core.dispatcher", "Dispatcher._cache", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.caching", "NullCache.load_overload", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.caching", "NullCache.save_overload", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.compiler", "CompileResult._reduce", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.compiler", "CompileResult._rebuild", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.codegen", "CPUCodegen.magic_tuple", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.serialize", "dumps", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.sigutils", "normalize_signature", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.dispatcher", "Dispatcher.targetoptions", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.types", "NamedTuple.instance_class", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.registry", "cpu_target", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.runtime.nrt", "rtsys", _MACHINE_CODE),
    PrivateName(*_NUMBA, "numba.core.registry", "CPUDispatcher", _LINKING),
    PrivateName(*_NUMBA, "numba.core.dispatcher", "Dispatcher._compiling_counter", _LINKING),
    PrivateName(*_NUMBA, "numba.core.dispatcher", "Dispatcher._compiler", _LINKING),
    PrivateName(*_NUMBA, "numba.core.dispatcher", "_FunctionCompiler._customize_flags", _LINKING),
    PrivateName(*_NUMBA, "numba.core.compiler", "Flags.no_compile", _LINKING),
    PrivateName(*_NUMBA, "numba.core.codegen", "JITCodeLibrary._final_module", _LINKING),
    PrivateName(*_NUMBA, "numba.core.codegen", "JITCodeLibrary._shared_module", _LINKING),
    PrivateName(*_NUMBA, "numba.core.codegen", "JITCodeLibrary._linking_libraries", _LINKING),
    PrivateName(*_NUMBA, "numba.core.base", "BaseContext.insert_user_function", _LINKING),
    PrivateName(*_KERAS_HUB, _MASKED_LM_HEAD, "MaskedLMHead._intermediate_dense", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _MASKED_LM_HEAD, "MaskedLMHead._intermediate_layer_norm", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _MASKED_LM_HEAD, "MaskedLMHead._bias", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._self_attention_layer", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._self_attention_layer_norm", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._feedforward_intermediate_dense", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._feedforward_output_dense", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._feedforward_layer_norm", _WEIGHTS),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._self_attention_dropout", _SIZES),
    PrivateName(*_KERAS_HUB, _ENCODER, "TransformerEncoder._feedforward_dropout", _SIZES),
    PrivateName(*_KERAS, _ATTENTION, "MultiHeadAttention._dropout", _SIZES),
    PrivateName(*_KERAS, _ATTENTION, "MultiHeadAttention._dropout_layer", _SIZES),
    PrivateName(*_KERAS, _OPTIMIZER, "BaseOptimizer._get_variable_index", "finds moments (training/optimizers.py)"),
    PrivateName(
        *_KERAS,
        "keras.src.backend.tensorflow.optimizer",
        "TFOptimizer._all_reduce_sum_gradients",
        "clips gradients after they are added up over devices (training/steps.py)",
    ),
    PrivateName(
        *_GRAIN,
        "grain._src.python.dataset.transformations.prefetch",
        "SupportsInPlaceSlicing.set_slice",
        "shares batches among grain's worker processes (maskmill/loaders/grain.py)",
    ),
    PrivateName(
        *_GRAIN,
        "grain._src.python.dataset.base",
        "SupportsBatchedReadRandomAccessDataSource._getitems",
        "reads several samples at once for grain (maskmill/loaders/grain.py)",
    ),
)


def missing(library: str) -> list[str]:
    """One sentence for each name of an installed library that is gone."""
    installed = platform.python_version() if library == "python" else metadata.version(library)
    return [
        f"{library} {installed} has no {name.module}.{name.name}, which {name.seen_in} had; maskmill "
        f"{name.used_for} with it."
        for name in PRIVATE_NAMES
        if name.library == library and not _exists(name)
    ]


def _exists(name: PrivateName) -> bool:
    try:
        found: Any = importlib.import_module(name.module)
    except ModuleNotFoundError:
        return False
    for part in name.name.split("."):
        if not hasattr(found, part):
            return inspect.isclass(found) and _sets(found, part)
        found = getattr(found, part)
    return True


def _sets(kind: type, attribute: str) -> bool:
    """Whether a method of a class, or of one that it is derived from, sets an attribute of that name."""
    methods = (value for base in kind.__mro__ for value in vars(base).values() if inspect.isfunction(value))
    return any(
        instruction.opname == "STORE_ATTR" and instruction.argval == attribute
        for method in methods
        for instruction in dis.get_instructions(method)
    )
