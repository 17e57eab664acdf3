"""Records that kernels receive as the address of the record, in place of every array that it holds.

numba passes a NamedTuple field by field, and an array as seven numbers. For a record of ninety
arrays every call of a kernel would hand over six hundred numbers. These take long to compile, and
time at every call. A class that :func:`by_reference` decorates is passed as one address, and a
kernel reads the fields that it names. Neither the class nor the code of kernels looks different.

A kernel must not return such a record that it has made itself, as the record ends with the call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

Class = TypeVar("Class", bound=type)
# The classes whose records kernels receive as addresses.
_CLASSES: set[type] = set()


class Reference(types.Type):  # type: ignore[misc]
    """The type of a record that kernels receive as an address. Kernels never change its fields.

    fields: The type that numba has for the record otherwise.
    zeros: Names of numbers that are 0 in every record of the type.
    """

    def __init__(self, fields: types.NamedTuple, zeros: tuple[str, ...] = ()) -> None:
        self.fields, self.zeros = fields, zeros
        # The name decides which machine code serves, and the code depends on the order of fields.
        super().__init__(name=f"Reference({fields.name}, {fields.fields}, {zeros})")

    def unify(self, _: Any, other: Any) -> Any:
        """A variable holds an address if its record is an argument or made by the kernel."""
        return self if other == self.fields else None

    def can_convert_from(self, _: Any, other: Any) -> Any:
        """A record that the kernel has made is written to the stack, see :func:`refer`."""
        return Conversion.safe if other == self.fields else None


def by_reference(zeros: tuple[str, ...] = ()) -> Callable[[Class], Class]:
    """Let kernels receive the records of a class, a NamedTuple, as addresses.

    zeros: Names of numbers that are 0 in every record of the class. Kernels are compiled for the
        class without the code that only other records need: see :class:`~.compiled.ZeroFields`.
    """

    def decorated(kind: Class) -> Class:
        typeof_impl.register(kind)(partial(_type_of, kind=kind, zeros=zeros))
        _CLASSES.add(kind)
        return kind

    return decorated


def _type_of(value: Any, context: Any, kind: type, zeros: tuple[str, ...]) -> Reference:
    """The type of a record of the class ``kind``."""
    return Reference(
        types.NamedTuple([typeof_impl(field, context) for field in value], kind), zeros
    )


def received(kind: Any) -> Any:
    """The type that a kernel receives where another kernel passes a value of the type ``kind``."""
    by_value = isinstance(kind, types.NamedTuple) and kind.instance_class in _CLASSES
    return Reference(kind) if by_value else kind


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):  # type: ignore[misc]
    """A reference is the address of the fields, which lie one after the other."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        fields = manager[kind.fields].get_value_type()
        super().__init__(manager, kind, fields.as_pointer())


@unbox(Reference)  # type: ignore[untyped-decorator]
def unbox_reference(kind: Reference, value: Any, context: Any) -> NativeValue:
    """Write the fields of a Python record to the stack, for the time of the call."""
    fields = context.unbox(kind.fields, value)
    place = cgutils.alloca_once_value(context.builder, fields.value)
    return NativeValue(place, cleanup=fields.cleanup, is_error=fields.is_error)


@lower_cast(types.NamedTuple, Reference)  # type: ignore[untyped-decorator]
def refer(_: Any, builder: Any, __: Any, ___: Any, fields: Any) -> Any:
    """Write the fields of a record that a kernel has made to the kernel's stack."""
    return cgutils.alloca_once_value(builder, fields)


@infer_getattr
class ReferenceAttributes(AttributeTemplate):  # type: ignore[misc]
    """The types of the fields."""

    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        """The type of a field, or None where there is no such field."""
        return dict(zip(kind.fields.fields, kind.fields.types, strict=True)).get(name)


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def lower_field(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    """Read one field."""
    number = kind.fields.fields.index(name)
    sort, place = kind.fields.types[number], cgutils.gep_inbounds(builder, value, 0, number)
    # The first two numbers of an array say who owns its memory. Kernels return no arrays and count
    # no references, so that both stay 0.
    field = _read(builder, place, 2 if isinstance(sort, types.Array) else 0)
    return impl_ret_borrowed(context, builder, sort, field)


def _read(builder: Any, place: Any, first: int = 0) -> Any:
    """Read a value number by number, so that LLVM leaves out the numbers that nobody uses.

    first: So many numbers at the beginning are not read, and are 0.
    """
    kind = place.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        return builder.load(place)
    whole, parts = ir.Constant(kind, None), getattr(kind, "elements", None)
    for i in range(first, kind.count if parts is None else len(parts)):
        part = _read(builder, cgutils.gep_inbounds(builder, place, 0, i))
        whole = builder.insert_value(whole, part, i)
    return whole
