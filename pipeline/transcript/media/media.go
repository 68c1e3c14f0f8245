// Package media determines what base64 data and data URLs contain: media type, size in bytes, and the size of images.
package media

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image/jpeg"
	"io"
	"strings"

	"precis/pipeline"
)

// Base64URL returns a data URL for base64 data. Data that are already a data URL or another address are returned as
// they are.
func Base64URL(mediaType, data string) string {
	if data == "" || strings.HasPrefix(data, "data:") || strings.HasPrefix(data, "http://") ||
		strings.HasPrefix(data, "https://") {
		return data
	}
	return "data:" + mediaType + ";base64," + data
}

// FromAddress sets the fields of an image or a file that its address determines.
func FromAddress(p *pipeline.Part, url string) {
	if mediaType, data, ok := SplitDataURL(url); ok {
		if p.MediaType == "" {
			p.MediaType = mediaType
		}
		Binary(p, data)
	}
}

// imageHeadBytes is the part of an image that is decoded to find its size: JPEG may have a thumbnail of up to 64 KiB
// before its own header.
const imageHeadBytes = 96 << 10

// Binary sets the fields that the head of base64 data determines.
func Binary(p *pipeline.Part, data string) {
	p.Bytes = decodedSize(data)
	if p.Kind != pipeline.PartImage {
		return
	}
	enc := base64.StdEncoding
	head := data[:min(len(data), base64.StdEncoding.EncodedLen(imageHeadBytes))]
	if strings.ContainsAny(head, "-_") {
		enc = base64.URLEncoding
	}
	// The decoder skips line breaks. It stops at invalid data; the header before them is still decoded.
	b, _ := io.ReadAll(base64.NewDecoder(enc, strings.NewReader(head)))
	mediaType, w, h := imageSize(b)
	p.Width, p.Height = w, h
	if p.MediaType == "" {
		p.MediaType = mediaType
	}
}

// decodedSize returns the number of bytes that base64 text encodes.
func decodedSize(data string) int {
	n := len(data)
	for _, c := range []string{"=", "\r", "\n"} {
		n -= strings.Count(data, c)
	}
	return n * 3 / 4
}

// imageSize reads the size in pixels from the head of an image file; zeros for an unknown kind. It reads the fixed
// headers of PNG, GIF and WebP itself, because the decoders of the standard library also need the palette.
func imageSize(b []byte) (mediaType string, width, height int) {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		if len(b) >= 24 && string(b[12:16]) == "IHDR" {
			width, height = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
		}
		return "image/png", width, height
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		if c, err := jpeg.DecodeConfig(bytes.NewReader(b)); err == nil {
			width, height = c.Width, c.Height
		}
		return "image/jpeg", width, height
	case bytes.HasPrefix(b, []byte("GIF8")):
		if len(b) >= 10 {
			width, height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
		}
		return "image/gif", width, height
	case len(b) >= 30 && bytes.HasPrefix(b, []byte("RIFF")) && string(b[8:12]) == "WEBP":
		width, height = webpSize(b)
		return "image/webp", width, height
	}
	return "", 0, 0
}

// webpSize reads the first chunk of a WebP file, per the container specification
// (https://developers.google.com/speed/webp/docs/riff_container).
func webpSize(b []byte) (width, height int) {
	le24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	switch string(b[12:16]) {
	case "VP8 ": // lossy: 14 bits each after the start code
		if string(b[23:26]) != "\x9d\x01\x2a" {
			return 0, 0
		}
		return int(binary.LittleEndian.Uint16(b[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[28:])) & 0x3fff
	case "VP8L": // lossless: two fields of 14 bits, less one
		if b[20] != 0x2f {
			return 0, 0
		}
		bits := binary.LittleEndian.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X": // extended: 24 bits each, less one
		return le24(b[24:]) + 1, le24(b[27:]) + 1
	}
	return 0, 0
}

// SplitDataURL splits a data: URL into its parts; ok is false for any other address.
func SplitDataURL(url string) (mediaType, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	mediaType, isBase64 := strings.CutSuffix(head, ";base64")
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return mediaType, data, isBase64
}

func FromDataURL(p *pipeline.Part, url string) {
	mediaType, data, ok := SplitDataURL(url)
	if !ok {
		return
	}
	p.MediaType = mediaType
	Binary(p, data)
}
