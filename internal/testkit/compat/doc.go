// Package compat holds databases and export files that earlier builds wrote, and the tests which prove that this
// build migrates, verifies, continues and imports them. See testdata/README.md for what they contain and how
// they were recorded.
package compat
