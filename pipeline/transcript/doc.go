// Package transcript reads and writes conversations in the formats of agents and vendors, without losing a byte.
// Messages are decoded for reading only; written are their original bytes, in which only edited values are replaced.
//
// A format is a type in a file of its own and a row of the table in format.go. Reading a file:
//
//	d, err := transcript.NewDecoder(r, transcript.Options{Format: "auto"})
//	for {
//		item, err := d.Next() // io.EOF at the end
//	}
//
// or at once, with Read. The Codec of a format reads and edits a stored message; EncodeItems writes a whole context.
//
// Below this package are rawjson (byte-exact JSON editing), jsonstream (reading), layout (the parts of a message),
// media and wire (the messages of the vendors' APIs). Above it, request writes request bodies, and convert writes
// conversations in other formats and files.
//
// The package performs no I/O of its own, reads no clock and does not depend on the order of maps.
package transcript
