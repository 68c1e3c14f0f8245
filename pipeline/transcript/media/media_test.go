package media

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"precis/pipeline"
)

func TestImageSizes(t *testing.T) {
	t.Parallel()
	encode := func(f func(*bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	picture := image.NewPaletted(image.Rect(0, 0, 301, 17), palette.Plan9)
	pngFile := encode(func(b *bytes.Buffer) error { return png.Encode(b, picture) })
	jpegFile := encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) })
	gifFile := encode(func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) })
	// A JPEG whose own header follows an application segment of the largest size.
	big := append([]byte{0xff, 0xd8, 0xff, 0xe1, 0xff, 0xff}, make([]byte, 0xfffd)...)
	big = append(big, jpegFile[2:]...)
	webp := func(chunk string, body ...byte) []byte {
		return append([]byte("RIFF\x00\x00\x00\x00WEBP"+chunk+"\x00\x00\x00\x00"), append(body, make([]byte, 16)...)...)
	}
	for _, c := range []struct {
		name, mediaType string
		file            []byte
		w, h            int
	}{
		{"png", "image/png", pngFile, 301, 17},
		{"png, its head only", "image/png", pngFile[:40], 301, 17},
		{"jpeg", "image/jpeg", jpegFile, 301, 17},
		{"jpeg with a large segment", "image/jpeg", big, 301, 17},
		{"gif", "image/gif", gifFile, 301, 17},
		{"webp lossy", "image/webp", webp("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 0x2d, 0x01, 0x11, 0x40), 301, 17},
		{"webp lossless", "image/webp", webp("VP8L", 0x2f, 0x2c, 0x01, 0x04, 0x00), 301, 17},
		{"webp extended", "image/webp", webp("VP8X", 0, 0, 0, 0, 0x2c, 0x01, 0, 0x10, 0, 0), 301, 17},
		{"webp of an unknown chunk", "image/webp", webp("XXXX"), 0, 0},
		{"webp lossy without its start code", "image/webp", webp("VP8 "), 0, 0},
		{"png cut before its size", "image/png", pngFile[:12], 0, 0},
		{"svg", "", []byte("<svg/>"), 0, 0},
		{"nothing", "", nil, 0, 0},
	} {
		for _, variant := range []struct {
			name string
			data string
		}{
			{"", base64.StdEncoding.EncodeToString(c.file)},
			{", url-safe", base64.URLEncoding.EncodeToString(c.file)},
			{", in lines", inLines(base64.StdEncoding.EncodeToString(c.file))},
			{", without padding", base64.RawStdEncoding.EncodeToString(c.file)},
		} {
			p := pipeline.Part{Kind: pipeline.PartImage}
			Binary(&p, variant.data)
			if p.Width != c.w || p.Height != c.h || p.MediaType != c.mediaType || p.Bytes != len(c.file) {
				t.Errorf("%s%s: %d×%d %q %d bytes, want %d×%d %q %d bytes", c.name, variant.name,
					p.Width, p.Height, p.MediaType, p.Bytes, c.w, c.h, c.mediaType, len(c.file))
			}
		}
	}
	p := pipeline.Part{Kind: pipeline.PartImage, MediaType: "image/given"}
	if Binary(&p, "%%%"); p.Width != 0 || p.MediaType != "image/given" {
		t.Errorf("no base64 gives %+v", p)
	}
}

func inLines(s string) string {
	var b strings.Builder
	for len(s) > 60 {
		b.WriteString(s[:60] + "\r\n")
		s = s[60:]
	}
	return b.String() + s
}

func TestDataURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, mediaType, data string
		ok                   bool
	}{
		{"data:image/png;base64,AAAA", "image/png", "AAAA", true},
		{"data:image/png;charset=x;base64,AA", "image/png", "AA", true},
		{"data:text/plain,hello", "text/plain", "hello", false},
		{"https://example.com/a.png", "", "", false},
		{"data:broken", "", "", false},
	} {
		mediaType, data, ok := SplitDataURL(c.url)
		if mediaType != c.mediaType || data != c.data || ok != c.ok {
			t.Errorf("%s: %q %q %v", c.url, mediaType, data, ok)
		}
	}
}

// FuzzImageSize looks for a head of an image that breaks its reader.
func FuzzImageSize(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03"))
	f.Add([]byte("\xff\xd8\xff\xe0\x00\x10JFIF"))
	f.Add([]byte("GIF89a\x02\x00\x03\x00"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, w, h := imageSize(b); w < 0 || h < 0 {
			t.Fatalf("%d×%d", w, h)
		}
	})
}
