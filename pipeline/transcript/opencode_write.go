package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// openCodePlace is the place in a session for which a message is made.
type openCodePlace struct {
	session string
	agent   string
	model   []byte // JSON: {"providerID":…,"modelID":…}
	created int64  // epoch milliseconds
	n       int    // messages made before it
}

// id returns an id in the form of opencode: a time, so that ids sort, and a rest that is derived from the arguments.
func (p openCodePlace) id(prefix string, of ...string) string {
	at := make([]byte, 8)
	stamp := uint64(p.created)*0x1000 + uint64(p.n)
	for i := range at {
		at[7-i] = byte(stamp >> (8 * i))
	}
	sum := sha256.Sum256([]byte(strings.Join(append(of, p.session, prefix), "\x00")))
	return prefix + "_" + hex.EncodeToString(at[2:]) + hex.EncodeToString(sum[:7])
}

func (p openCodePlace) modelJSON() []byte {
	if p.model == nil {
		return []byte(`{"providerID":"","modelID":""}`)
	}
	return p.model
}

// user writes a user message of one part, given without its ids and its closing brace.
func (p openCodePlace) user(part []byte) []byte {
	id := p.id("msg", string(part))
	b := fmt.Appendf(
		nil, `{"info":{"id":%s,"sessionID":%s,"role":"user","time":{"created":%d},"agent":%s,"model":%s},"parts":[`,
		rawjson.Quote(id), rawjson.Quote(p.session), p.created, rawjson.Quote(p.agent), p.modelJSON())
	return append(p.part(b, part, id), "]}"...)
}

func (p openCodePlace) part(b, part []byte, message string) []byte {
	return fmt.Appendf(b, `%s,"id":%s,"sessionID":%s,"messageID":%s}`, part, rawjson.Quote(p.id("prt", string(part))),
		rawjson.Quote(p.session), rawjson.Quote(message))
}

// summary writes the two messages of a compaction.
func (p openCodePlace) summary(text, trigger string) [][]byte {
	ask := fmt.Appendf(nil, `{"type":"compaction","auto":%t`, trigger == "auto")
	asked := p.user(ask)
	p.n++
	said := fmt.Appendf(nil, `{"type":"text","text":%s`, rawjson.Quote(text))
	id := p.id("msg", string(said))
	var model struct{ ProviderID, ModelID string }
	_ = json.Unmarshal(p.modelJSON(), &model) // made here: it cannot fail
	b := fmt.Appendf(nil, `{"info":{"id":%s,"sessionID":%s,"role":"assistant","time":{"created":%d,`+
		`"completed":%d},"parentID":%s,"modelID":%s,"providerID":%s,"mode":"compaction","agent":"compaction",`+
		`"path":{"cwd":"","root":""},"summary":true,"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,`+
		`"cache":{"read":0,"write":0}},"finish":"stop"},"parts":[`, rawjson.Quote(id), rawjson.Quote(p.session),
		p.created, p.created, rawjson.Quote(openCode{}.record(rawjson.Root(asked)).id), rawjson.Quote(model.ModelID),
		rawjson.Quote(model.ProviderID))
	return [][]byte{asked, append(p.part(b, said, id), "]}"...)}
}

func (f openCode) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	place := f.placeOf(out.Meta, all)
	var natives [][]byte
	for _, e := range all {
		switch {
		case e.made == nil:
			natives = append(natives, e.native)
		case e.made.Kind == pipeline.KindSummary:
			natives = append(natives, place.summary(e.made.Text, out.Trigger)...)
			place.n += 2
		default:
			natives = append(natives, place.user([]byte(`{"type":"text","text":`+string(rawjson.Quote(e.made.Text))+
				`,"synthetic":true`)))
			place.n++
		}
	}
	return rawjson.PutArray(out.Meta.Envelope, rawjson.ArrayOf(natives), "messages"), nil
}

// placeOf takes the fields of made messages from the session, and a time just before the first message that is kept,
// so that no clock is read.
func (openCode) placeOf(m Meta, all []entry) openCodePlace {
	p := openCodePlace{}
	model := func(b []byte, provider, id rawjson.Value) {
		if p.model == nil && id.IsString() {
			p.model = fmt.Appendf(nil, `{"providerID":%s,"modelID":%s}`, rawjson.Quote(provider.Text()),
				rawjson.Quote(id.Text()))
		}
	}
	for _, e := range all {
		if e.made != nil {
			continue
		}
		b := e.native
		info := rawjson.Root(b).Get("info")
		if p.created == 0 {
			p.created = max(int64(info.Get("time", "created").Count())-1, 0)
		}
		p.session = cmp.Or(p.session, info.Get("sessionID").Text())
		p.agent = cmp.Or(p.agent, info.Get("agent").Text())
		model(b, info.Get("providerID"), info.Get("modelID"))
		model(b, info.Get("model", "providerID"), info.Get("model", "modelID"))
	}
	if b := m.Envelope; len(b) > 0 && rawjson.Check(b) == nil {
		info := rawjson.Root(b).Get("info")
		p.session = cmp.Or(info.Get("id").Text(), p.session)
		if p.created == 0 {
			p.created = int64(info.Get("time", "updated").Count())
		}
		model(b, info.Get("model", "providerID"), info.Get("model", "id"))
	}
	return p
}
