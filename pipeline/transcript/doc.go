// Package transcript reads and writes conversations in the formats of agents and vendors, without losing a
// byte. A message is decoded for reading only; what goes back out is what came in, with at most the edited
// values replaced.
//
// A format is a type in a file of its own and a row of the table in format.go. Reading a file:
//
//	d, err := transcript.NewDecoder(r, transcript.Options{Format: "auto"})
//	for {
//		item, err := d.Next() // io.EOF at the end
//	}
//
// or at once, with Read. A stored message goes through the Codec of its format, a whole context through EncodeItems.
//
// Below this package are rawjson (byte-exact JSON editing), jsonstream (reading), layout (a message taken apart), media
// and wire (the messages of the vendors' APIs). Above it, request writes request bodies, and convert writes conversations
// in other formats and files.
//
// The package does no I/O of its own, reads no clock and depends on no map's order.
package transcript
