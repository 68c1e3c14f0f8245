// Package version says which build of precis this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Code names the build: the module's version, which Go makes of the tag or the revision that was built
// ("v1.2.0", "v0.0.0-20261130094512-4931c93694d3+dirty"), or "devel" for a build without either.
func Code() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// Text is one line for a person: the build, the compiler and the platform.
func Text() string {
	return fmt.Sprintf("%s (%s, %s/%s)", Code(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
