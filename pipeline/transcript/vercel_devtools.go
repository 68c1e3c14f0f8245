package transcript

import (
	"bytes"

	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

const sourceDevtools = "ai-sdk-devtools"

// devtools reads steps, each with the whole prompt so far as a JSON string. The longest prompt of each run is kept
// until the end, in bounded memory: beyond the bound the run with the oldest last step is emitted.
type devtools struct {
	runs        []*devtoolsRun
	bytes, hold int
	clock       int
}

type devtoolsRun struct {
	id            string
	line, touched int
	input, output []byte
	count         int
	model         string
	provider      string
	usage         *Usage
}

func (d *devtools) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	embedded := func(key string) []byte {
		s, ok := v.Get(key).Str()
		if !ok || rawjson.Check([]byte(s)) != nil {
			return nil
		}
		return []byte(s)
	}
	r := &devtoolsRun{
		id: v.Get("run_id").Text(), line: line, input: embedded("input"),
		output: embedded("output"),
	}
	prompt, ok := rawjson.Root(r.input).Lookup("prompt")
	if !ok || !prompt.IsArray() {
		out.note(line, NoteRecord, "step", "a step without a prompt")
		return nil
	}
	r.count = len(prompt.Elements())
	if failed := v.Get("error"); failed.IsString() {
		r.output = nil // cut off: no later prompt contains it
	}
	r.model, r.provider = v.Get("model_id").Text(), v.Get("provider").Text()
	if u := embedded("usage"); u != nil {
		r.usage = vercel{}.usage(rawjson.Root(u), r.model)
	}
	d.clock++
	r.touched = d.clock
	for i, old := range d.runs {
		if old.id != r.id {
			continue
		}
		out.note(line, NoteRequest, sourceDevtools, "the last step of the run contains it")
		if r.count < old.count {
			old.touched = d.clock
			return nil
		}
		d.bytes += len(r.input) - len(old.input)
		r.line = old.line
		d.runs[i] = r
		return d.trim(out)
	}
	d.runs = append(d.runs, r)
	d.bytes += len(r.input)
	return d.trim(out)
}

func (d *devtools) trim(out *emitter) error {
	for d.bytes > d.hold && len(d.runs) > 1 {
		oldest := 0
		for i, r := range d.runs {
			if r.touched < d.runs[oldest].touched {
				oldest = i
			}
		}
		if err := d.give(out, oldest); err != nil {
			return err
		}
	}
	return nil
}

func (d *devtools) end(out *emitter, _ []byte) error {
	for len(d.runs) > 0 {
		if err := d.give(out, 0); err != nil {
			return err
		}
	}
	return nil
}

// give emits a run as a conversation.
func (d *devtools) give(out *emitter, i int) error {
	r := d.runs[i]
	d.runs = append(d.runs[:i:i], d.runs[i+1:]...)
	d.bytes -= len(r.input)
	prompt := rawjson.Root(r.input).Get("prompt")
	// The step names the model beside its input.
	around := prompt.With([]byte("[]"))
	around = rawjson.AddPair(rawjson.AddPair(around, "model_id", rawjson.Quote(r.model)), "provider",
		rawjson.Quote(r.provider))
	vercel{}.meta(&out.meta, around)
	out.meta.ID = r.id
	out.begin(r.line)
	natives := [][]byte{}
	for _, el := range prompt.Elements() {
		natives = append(natives, el.Raw())
	}
	if answer := devtoolsAnswer(r.output); answer != nil {
		natives = append(natives, answer)
	}
	for _, native := range natives {
		m, err := decode(vercel{}, native)
		if err != nil {
			if err = out.fault(r.line, err); err != nil {
				return err
			}
			continue
		}
		out.message(r.line, m)
	}
	out.usage(r.line, r.usage)
	out.close(r.line)
	return nil
}

// devtoolsAnswer makes the output of a step into the message that the next prompt would contain, nil for none.
func devtoolsAnswer(output []byte) []byte {
	if !rawjson.Root(output).IsObject() {
		return nil
	}
	v := rawjson.Root(output)
	var blocks [][]byte
	each := func(key string, block func(el rawjson.Value) []byte) {
		list, ok := v.Lookup(key)
		if !ok || !list.IsArray() {
			return
		}
		for _, el := range list.Elements() {
			if el.IsObject() {
				if b := block(el); b != nil {
					blocks = append(blocks, b)
				}
			}
		}
	}
	said := func(typ string) func(rawjson.Value) []byte {
		return func(el rawjson.Value) []byte {
			lit, ok := el.Lookup("text")
			if !ok || !lit.IsString() || lit.IsEmpty() {
				return nil
			}
			return append(append([]byte(`{"type":"`+typ+`","text":`), lit.Raw()...), '}')
		}
	}
	each("reasoningParts", said("reasoning"))
	each("textParts", said("text"))
	each("toolCalls", func(el rawjson.Value) []byte {
		// The log has the input as a string, as the model wrote it; a message has the object.
		in, ok := el.Lookup("input")
		if s, isString := in.Str(); ok && isString && rawjson.Check([]byte(s)) == nil {
			b := in.With(bytes.TrimSpace([]byte(s)))
			return rawjson.At(b, el.Start()).Raw()
		}
		return el.Raw()
	})
	if len(blocks) == 0 {
		return nil
	}
	return anthropic.Wrap("assistant", blocks)
}

// usage reads the SDK's usage: figures, or from version 6 on objects of them.
func (vercel) usage(v rawjson.Value, model string) *Usage {
	u := &Usage{Model: model}
	input := v.Get("inputTokens")
	output := v.Get("outputTokens")
	all := input.Count()
	u.Output, u.CacheRead = output.Count(), v.Get("cachedInputTokens").Count()
	if input.IsObject() {
		all = input.Get("total").Count()
		u.CacheRead = input.Get("cacheRead").Count()
		u.CacheCreation = input.Get("cacheWrite").Count()
	}
	if output.IsObject() {
		u.Output = output.Get("total").Count()
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = v.Get("totalTokens").Count(); u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}
