#!/bin/sh
# Prints the images of docker-compose.yml and of the Dockerfile with the digests that their tags have now, as lines for
# the file .env. With them, what was tested is what starts, even after a tag has moved:
#   deploy/pin-images.sh >> .env
# It needs Docker with buildx, and the registries of the images.
set -eu
pin() {
	digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$2") || {
		echo "the digest of $2 could not be read" >&2
		exit 1
	}
	echo "$1=$2@$digest"
}
pin POSTGRES_IMAGE postgres:17
pin TEMPORAL_IMAGE temporalio/server:1.32.1
pin TEMPORAL_TOOLS_IMAGE temporalio/admin-tools:1.32.1
pin TEMPORAL_UI_IMAGE temporalio/ui:2.55.0
pin GO_IMAGE golang:1.26.8-bookworm
pin BASE_IMAGE gcr.io/distroless/static-debian12:nonroot
