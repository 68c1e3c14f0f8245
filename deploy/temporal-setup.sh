#!/bin/sh
# Creates the namespace and the search attributes by which workflows are found. It can be run repeatedly.
# Reads TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE, as the temporal command does, and TEMPORAL_RETENTION.
set -eu
tries=0
until temporal operator cluster health; do
	tries=$((tries + 1))
	if [ "$tries" -ge 60 ]; then
		echo "Temporal at $TEMPORAL_ADDRESS is not healthy after $tries tries" >&2
		exit 1
	fi
	sleep 1
done
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention "$TEMPORAL_RETENTION"
# Some parts of the server learn of a new namespace a moment later.
tries=0
until temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
	--name PrecisTenant --type Keyword \
	--name PrecisConversation --type Keyword \
	--name PrecisOutcome --type Keyword \
	--name PrecisErrorKind --type Keyword \
	--name PrecisSummarizer --type Keyword \
	--name PrecisTrigger --type Keyword; do
	tries=$((tries + 1))
	if [ "$tries" -ge 30 ]; then
		echo "the search attributes of $TEMPORAL_NAMESPACE could not be created after $tries tries" >&2
		exit 1
	fi
	sleep 1
done
