# syntax=docker/dockerfile:1
# deploy/pin-images.sh prints both images with their digests.
ARG GO_IMAGE=golang:1.26.8-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM ${GO_IMAGE} AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# If the build context has the repository, its revision is built into the programs and recorded with every run.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
	git config --global --add safe.directory /src && \
	vcs=$(git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false) && \
	go build -buildvcs=$vcs -trimpath -ldflags='-s -w' -o /out/precis ./starter && \
	go build -buildvcs=$vcs -trimpath -ldflags='-s -w' -o /out/worker ./worker

# The image has certificate authorities, time zones and a user other than root, and no shell.
FROM ${BASE_IMAGE}
COPY --from=build /out/precis /out/worker /usr/local/bin/
WORKDIR /home/nonroot
USER nonroot
CMD ["/usr/local/bin/worker"]
