"""Checks request bodies against the types of the vendors' SDKs: one JSON object `{id, kind, body}` per line, one `{id, faults}` back.

The types are those that the vendors generate from their API descriptions: TypedDicts of `openai` and `anthropic`, the service model
of `botocore`. Members that they do not know are faults, as for the APIs.
"""

import base64
import json
import re
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence

import botocore.loaders
import botocore.model
import botocore.validate
import typing_extensions
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_count_tokens_params as beta_count_params
from anthropic.types.beta import message_create_params as beta_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

SCALARS = {str: (str,), int: (int,), float: (int, float), bool: (bool,), type(None): (type(None),)}


def check(value, kind, place=""):
    """The faults of a value of a type, as texts."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired):
        return check(value, args[0], place)
    if typing_extensions.is_typeddict(kind):
        return check_members(value, kind, place)
    if origin in (typing.Union, types.UnionType):
        return min((check(value, one, place) for one in args), key=lambda faults: weigh(faults, place))
    if origin in (typing.Literal, typing_extensions.Literal):
        return [] if value in args else [f"{place}: {value!r} is none of {', '.join(map(repr, args))}"]
    if origin in (list, Iterable, Sequence):
        if not isinstance(value, list):
            return [f"{place}: {value!r} is no list"]
        return [fault for at, item in enumerate(value) for fault in check(item, args[0], f"{place}[{at}]")]
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            return [f"{place}: {value!r} is no object"]
        return [fault for key, item in value.items() for fault in check(item, args[1], f"{place}.{key}")]
    if kind in (object, typing.Any):
        return []
    # A union also has classes of responses, which are no JSON.
    expected = SCALARS.get(kind, ())
    if isinstance(value, expected) and (kind is bool or not isinstance(value, bool)):
        return []
    return [f"{place}: {value!r} is no {kind.__name__}"]


def weigh(faults, place):
    """How little a branch of a union is meant: it is another kind of value, it has another `type`, it has faults."""
    places = [fault.partition(": ")[0] for fault in faults]
    return (place in places, any(one in (f"{place}.type", f"{place}.role") for one in places), len(faults))


def check_members(value, kind, place):
    if not isinstance(value, dict):
        return [f"{place}: {value!r} is no object"]
    hints = hints_of(kind)
    required = [key for key, hint in hints.items() if typing.get_origin(hint) in (typing.Required, typing_extensions.Required) or key in kind.__required_keys__]
    faults = [f"{place}.{key}: Field required" for key in required if key not in value]
    for key, item in value.items():
        if key in hints:
            faults += check(item, hints[key], f"{place}.{key}")
        elif not is_open(kind):
            faults.append(f"{place}.{key}: Extra inputs are not permitted")
    return faults


def is_open(kind):
    """Whether a type allows other members: schemas of functions, for example."""
    return getattr(kind, "__extra_items__", None) not in (None, typing_extensions.NoExtraItems)


HINTS = {}


def hints_of(kind):
    if kind not in HINTS:
        HINTS[kind] = typing_extensions.get_type_hints(kind, include_extras=True)
    return HINTS[kind]


BEDROCK = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2"))


def check_operation(body, operation):
    shape = BEDROCK.operation_model(operation).input_shape
    report = botocore.validate.ParamValidator().validate(decode({"modelId": "m", **body}, shape), shape)
    return [line for line in report.generate_report().split("\n") if line]


def decode(value, shape):
    """The members of a body as botocore has them: blobs are base64 in JSON."""
    if shape is None or shape.type_name not in ("structure", "list", "map", "blob") or getattr(shape, "is_document_type", False):
        return value
    if shape.type_name == "blob" and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if shape.type_name == "list" and isinstance(value, list):
        return [decode(item, shape.member) for item in value]
    if shape.type_name == "map" and isinstance(value, dict):
        return {key: decode(item, shape.value) for key, item in value.items()}
    if shape.type_name == "structure" and isinstance(value, dict):
        return {key: decode(item, shape.members.get(key)) for key, item in value.items()}
    return value


# Where the APIs take more than the types of their SDKs say.
TOLERATED = {
    # Members of messages that OpenAI ignores.
    "completions": re.compile(r"\.messages\[\d+\]\.\w+: Extra inputs"),
    # What the types require of items that were received, and of tools, is optional.
    # Codex CLI has fields that the SDK does not know.
    "responses": re.compile(r"^\.client_metadata|^\.tools\[\d+\]\.\w+: Extra inputs|\.status: Field required|\.strict: Field required|'output_text' is none of|\.annotations: Extra inputs|\.detail: Field required|\.content: None is|\.id: Extra inputs"),
    # Models before Claude 4.7 have these.
    "messages": re.compile(r"^\.(temperature|top_p|top_k): Extra inputs"),
}


def typed(kind, name):
    tolerated = TOLERATED.get(name)
    return lambda body: [fault for fault in check(body, kind) if tolerated is None or not tolerated.search(fault)]


CHECKS = {
    "completions": typed(completion_create_params.CompletionCreateParamsNonStreaming | completion_create_params.CompletionCreateParamsStreaming, "completions"),
    "responses": typed(response_create_params.ResponseCreateParamsNonStreaming | response_create_params.ResponseCreateParamsStreaming, "responses"),
    "messages": typed(message_create_params.MessageCreateParamsNonStreaming | message_create_params.MessageCreateParamsStreaming, "messages"),
    "messages-beta": typed(beta_create_params.MessageCreateParamsNonStreaming | beta_create_params.MessageCreateParamsStreaming, "messages"),
    "count": typed(message_count_tokens_params.MessageCountTokensParams, "count"),
    "count-beta": typed(beta_count_params.MessageCountTokensParams, "count"),
    "converse": lambda body: check_operation(body, "Converse"),
    "count-tokens": lambda body: check_operation(body, "CountTokens"),
    "converse-stream": lambda body: check_operation(body, "ConverseStream"),
}

if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            faults = CHECKS[request["kind"]](request["body"])
        except Exception as error:
            faults = [f"cannot be checked: {error!r}"]
        print(json.dumps({"id": request["id"], "faults": faults[:5]}), flush=True)
