#!/usr/bin/env bash
# An agent in curl and jq: it answers the lines of its standard input, and precis keeps its context within the window.
set -euo pipefail

conversations=${PRECIS_URL:-http://127.0.0.1:8700}/v1/conversations
vendor=${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages
model=${MODEL:-claude-sonnet-4-5}
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# precis PATH < BODY
precis() {
	curl --silent --show-error --fail-with-body -H 'Content-Type: application/json' \
		${PRECIS_KEY:+-H "Authorization: Bearer $PRECIS_KEY"} --data-binary @- "$conversations$1"
}

conversation=/$(jq -n --arg model "$model" '{
	format: "anthropic", model: {vendor: "anthropic", name: $model}, system: "You are a helpful assistant.", tools: []
}' | precis "" | jq -r .id)
while IFS= read -r line; do
	jq -n --arg said "$line" '{messages: [{role: "user", content: $said}]}' | precis "$conversation/messages" >/dev/null
	while :; do
		reply=$(precis "$conversation/replies" <<<'{}')
		end=$conversation/replies/$(jq -r .reply <<<"$reply")/end
		request=$(jq --arg model "$model" '.context | {$model, max_tokens: 1024, system, tools, messages}' <<<"$reply")
		status=$(curl --silent --output "$answer" --write-out '%{http_code}' \
			-H 'Content-Type: application/json' -H 'Anthropic-Version: 2023-06-01' -H "X-Api-Key: $ANTHROPIC_API_KEY" \
			--data-binary @- "$vendor" <<<"$request")
		if [ "$status" = 200 ]; then
			jq '{messages: [{role: "assistant", content}], usage}' "$answer" | precis "$end" >/dev/null
			jq -r '.content[0].text' "$answer"
			break
		fi
		ended=$(jq -n --argjson status "$status" --rawfile body "$answer" '{error: {$status, $body}}' | precis "$end")
		if [ "$(jq 'has("run")' <<<"$ended")" = false ]; then
			echo "the model answered $status: $(cat "$answer")" >&2
			exit 1
		fi
		# The context overflowed: wait for the compaction, then ask the model again.
		precis "$conversation/compactions" <<<'{"wait_seconds": 300}' >/dev/null
	done
done
