"""An agent in Python's standard library: it answers the lines of its standard input, and precis looks to its context."""

import json
import os
import sys
import urllib.error
import urllib.request

PRECIS = os.environ.get("PRECIS_URL", "http://127.0.0.1:8700") + "/v1/conversations"
KEY = {"Authorization": "Bearer " + os.environ["PRECIS_KEY"]} if "PRECIS_KEY" in os.environ else {}
VENDOR = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com") + "/v1/messages"
VENDOR_KEY = {"X-Api-Key": os.environ["ANTHROPIC_API_KEY"], "Anthropic-Version": "2023-06-01"}
MODEL = os.environ.get("MODEL", "claude-sonnet-4-5")
SYSTEM, TOOLS = "You are a helpful assistant.", []


def post(url, body, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def precis(path, body):
    status, answer = post(PRECIS + path, body, KEY)
    if status >= 400:
        sys.exit(f"precis: {answer}")
    return answer


model = {"vendor": "anthropic", "name": MODEL}
talk = "/" + precis("", {"format": "anthropic", "model": model, "system": SYSTEM, "tools": TOOLS})["id"]
for line in sys.stdin:
    precis(talk + "/messages", {"messages": [{"role": "user", "content": line.strip()}]})
    while True:
        reply = precis(talk + "/replies", {})
        messages = reply["context"]["messages"]
        request = {"model": MODEL, "max_tokens": 1024, "system": SYSTEM, "tools": TOOLS, "messages": messages}
        status, answer = post(VENDOR, request, VENDOR_KEY)
        end = f"{talk}/replies/{reply['reply']}/end"
        if status == 200:
            precis(end, {"messages": [{"role": "assistant", "content": answer["content"]}], "usage": answer["usage"]})
            print(answer["content"][0]["text"])
            break
        ended = precis(end, {"error": {"status": status, "body": answer}})
        if "run" not in ended:
            sys.exit(f"the model answered {status}: {answer}")
        precis(talk + "/compactions", {"wait_seconds": 300})  # it overflowed: wait for the compaction, then ask again
