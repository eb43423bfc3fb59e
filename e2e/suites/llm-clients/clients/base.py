"""What the clients in Python have in common: the prompts, and one line of JSON for each provider and feature.

A client exports functions by the name of a feature, which take a Provider and fail if the response is not the expected one.
"""

import base64
import concurrent.futures
import importlib.metadata
import json
import sys
import traceback
import urllib.request
import uuid
import warnings
from dataclasses import dataclass

# Warnings about old models.
warnings.simplefilter("ignore")
FEATURES = ("text", "stream", "tools", "image", "thinking", "schema", "error", "cancel")

HELLO = "Say hello."
HELLO_REPLY = "Hello, world. Grüß Gott 👋."
TOOLS = "Weather of Paris and Rome?"
TOOLS_REPLY = "21 degrees in Paris; 25 degrees in Rome"
IMAGE = "What is in the picture?"
THINKING = "Weather of Oslo, then of Bergen?"
THINKING_REPLY = "3 degrees in Oslo; 7 degrees in Bergen"
SCHEMA = "Weather as JSON of Paris, please."
ERROR = "Fail with 429."
ERROR_MESSAGE = "slow down"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
DEGREES = {"Paris": 21, "Rome": 25, "Oslo": 3, "Bergen": 7}

# A picture of one pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
PNG_BASE64 = base64.b64encode(PNG).decode()
PNG_URL = f"data:image/png;base64,{PNG_BASE64}"
PNG_REPLY = f"image/png of {len(PNG)} bytes"


class NotApplicable(Exception):
    """The client, or the API that it uses, does not have the feature."""


class NotOffered(Exception):
    """The gateway does not have what the client needs."""


@dataclass
class Provider:
    name: str
    url: str
    model: str
    control: str

    def endless(self):
        """The prompt of a response without an end, and a function that waits until the provider's connection is closed."""
        tag = uuid.uuid4().hex

        def is_left():
            with urllib.request.urlopen(f"{self.control}/{tag}", timeout=30) as response:
                return json.load(response)["isGone"]

        return f"Count to a million, {tag}", is_left


def weather(city):
    return f"{DEGREES[city]} degrees in {city}"


def same(actual, expected):
    if actual != expected:
        raise AssertionError(f"{actual!r} instead of {expected!r}")


def status_of(error):
    for one in (error, getattr(error, "__cause__", None)):
        for member in ("status_code", "code"):
            if isinstance(getattr(one, member, None), int):
                return getattr(one, member)
    return None


def attempt(run, provider):
    try:
        run(provider)
        return {"outcome": "works"}
    except NotApplicable as reason:
        return {"outcome": "notApplicable", "reason": str(reason)}
    except NotOffered as reason:
        return {"outcome": "notOffered", "reason": str(reason)}
    except Exception as error:
        text = str(error) or repr(error)
        status = status_of(error)
        if status in (400, 404) and "violation" not in text:
            return {"outcome": "rejected", "status": status, "reason": text}
        return {"outcome": "fails", "reason": f"{type(error).__name__}: {text}", "trace": traceback.format_exc()[-3000:]}


PLAN = json.loads(sys.argv[1])


def main(module, package=None, version=None, workers=1):
    print(json.dumps({"version": version or importlib.metadata.version(package)}), flush=True)
    features = [feature for feature in FEATURES if feature in PLAN.get("only", FEATURES)]

    def run(one):
        provider = Provider(**one, control=PLAN["control"])
        return [{"provider": provider.name, "feature": feature, **attempt(getattr(module, feature), provider)} for feature in features]

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for lines in pool.map(run, PLAN["providers"]):
            for line in lines:
                print(json.dumps(line), flush=True)
