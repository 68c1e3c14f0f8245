# syntax=docker/dockerfile:1
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# The revision goes into the programs, and from there onto every run, where the context holds the repository.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
	git config --global --add safe.directory /src && \
	vcs=$(git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false) && \
	go build -buildvcs=$vcs -trimpath -ldflags='-s -w' -o /out/precis ./starter && \
	go build -buildvcs=$vcs -trimpath -ldflags='-s -w' -o /out/worker ./worker

# Certificate authorities, time zones and a user that is not root; no shell.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/precis /out/worker /usr/local/bin/
WORKDIR /home/nonroot
USER nonroot
CMD ["/usr/local/bin/worker"]
