package pipeline

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/internal/testkit/corpus"
)

// texts are long samples of what a transcript may hold, some 200 KB each, without much repetition.
var texts = func() map[string]string {
	const size = 200_000
	fill := func(words []string, between string) string {
		var out strings.Builder
		for i, b := range noise(size) {
			out.WriteString(words[int(b)%len(words)])
			out.WriteString(between)
			if i%17 == 16 {
				out.WriteString("\n")
			}
			if out.Len() > size {
				break
			}
		}
		return out.String()
	}
	han := make([]string, 256)
	for i := range han {
		han[i] = string(rune(0x4e00 + i*37))
	}
	texts := map[string]string{
		"english": fill(strings.Fields("the of and we should not deploy on Friday because nobody is around to "+
			"restart a server; however, this function returns early when its argument happens to be empty"), " "),
		"german": fill(strings.Fields("Wir müssen die Zusammenfassung überprüfen, bevor das Gespräch "+
			"weitergeht; außerdem fehlen noch Änderungen in der Größe des Kontextfensters"), " "),
		"russian": fill(
			strings.Fields("нам нужно проверить сводку прежде чем разговор продолжится и сохранить все сообщения "+
				"пользователя дословно"), " "),
		"japanese": fill([]string{"要約", "を", "確認", "して", "から", "会話", "を", "続ける", "必要", "が", "あります", "。", "テスト", "データ"},
			""),
		"chinese":  fill([]string{"我们", "需要", "检查", "摘要", "然后", "继续", "对话", "，", "保留", "用户", "的", "原话", "。"}, ""),
		"rare han": fill(han, ""),
		"korean":   fill(strings.Fields("요약을 확인한 다음 대화를 계속해야 합니다 사용자의 말은 그대로 남겨 둡니다"), " "),
		"arabic":   fill(strings.Fields("يجب أن نتحقق من الملخص قبل أن تستمر المحادثة ونحفظ كلام المستخدم"), " "),
		"hindi":    fill(strings.Fields("हमें बातचीत जारी रखने से पहले सारांश की जाँच करनी चाहिए"), " "),
		"thai":     fill([]string{"เรา", "ต้อง", "ตรวจสอบ", "สรุป", "ก่อน", "ที่จะ", "สนทนา", "ต่อ"}, ""),
		"emoji":    fill([]string{"😀", "🎉", "👩‍👩‍👧", "🚀", "✅", "❌", "🇩🇪", " ok "}, ""),
		"code": fill([]string{
			"if err := s.store.Append(ctx, id, msgs); err != nil {\n\t\treturn " +
				"fmt.Errorf(\"append %q: %w\", id, err)\n\t}\n", "const maxRetries = 5\n",
			"func (t *trimmer) capTokens(view *resultView) bool {\n", "\t\tfor i, c := range view.contents {\n",
			"}\n\n",
		}, "\t"),
		"json": fill(
			[]string{
				`{"id":"toolu_01A","type":"tool_use","name":"Read","input":{"file_path":"/src/a.go"}}`,
				`,"usage":{"input_tokens":4123,"output_tokens":88}`, `[1,2.5,null,true]`,
			}, ",\n"),
		"base64":   encoded(150_000),
		"hex":      hex.EncodeToString(noise(100_000)),
		"digits":   fill([]string{"3.14159", "2026-11-29T22:44:01Z", "192.168.0.1", "65535"}, "\t"),
		"spaces":   strings.Repeat(strings.Repeat(" ", 40)+"x\n", 5000),
		"rulers":   strings.Repeat(strings.Repeat("=", 79)+"\n", 2500),
		"one char": strings.Repeat("a", size),
		"abc":      strings.Repeat("abc ", size/4),
		"invalid":  string(noise(100_000)),
	}
	texts["mixed"] = texts["english"][:60_000] + texts["base64"][:60_000] + string([]rune(texts["rare han"])[:20_000])
	return texts
}()

// An estimate is within 10 % of the count, for any language and anything else in transcripts.
func TestEstimateText(t *testing.T) {
	t.Parallel()
	for name, text := range texts {
		for _, size := range []int{1000, exactTextBytes, exactTextBytes + 1, 50_000, len(text)} {
			part := text[:runeStart(text, min(size, len(text)))]
			want, got := countTokens(part), EstimateText(part)
			if miss := math.Abs(float64(got)/float64(want) - 1); miss > 0.10 || len(part) <= exactTextBytes &&
				got != want {
				t.Errorf("%s, %d bytes: estimated %d, counted %d", name, len(part), got, want)
			}
		}
	}
}

func TestEstimateTextOfRealTranscripts(t *testing.T) {
	t.Parallel()
	for _, file := range corpus.Files(t, "") {
		if file.Size < exactTextBytes || file.Size > 400_000 {
			continue
		}
		t.Run(file.Name, func(t *testing.T) {
			t.Parallel()
			text := string(file.Read(t))
			want, got := countTokens(text), EstimateText(text)
			if miss := math.Abs(float64(got)/float64(want) - 1); miss > 0.07 {
				t.Errorf("estimated %d tokens, counted %d", got, want)
			}
		})
	}
}

// Chinese is not four chars a token, and ASCII is about that.
func TestEstimateTextByScript(t *testing.T) {
	t.Parallel()
	if n := EstimateText(strings.Repeat("漢字", 15_000)); n < 18_000 || n > 40_000 {
		t.Errorf("30000 Han chars are %d tokens", n)
	}
	if n := EstimateText(strings.Repeat("abc ", 10_000)); n < 9_500 || n > 10_500 {
		t.Errorf("10000 times abc is %d tokens", n)
	}
	if n := EstimateText(""); n != 0 {
		t.Errorf("nothing is %d tokens", n)
	}
}

func TestEstimateTextIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(genText().Draw(t, "text")+"x", rapid.IntRange(1, 200).Draw(t, "times"))
		if a, b := EstimateText(text), EstimateText(text); a != b || a < 1 {
			t.Fatalf("%d, then %d", a, b)
		}
	})
}

func TestEstimateImage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ w, h, want int }{
		{1000, 1000, 1333},      // Anthropic's own example, about 1,334
		{1092, 1092, 1533},      // over 1.15 megapixels
		{8000, 6000, 1533},      // scaled down
		{512, 512, 350},         // 85 + 170 beats 350
		{100, 100, 255},         // one tile
		{200, 2000, 85 + 4*170}, // a strip of four tiles
		{0, 0, imageTokens},
		{-1, 50, imageTokens},
	} {
		if got := estimateImage(tt.w, tt.h); got != tt.want {
			t.Errorf("estimateImage(%d, %d) = %d, want %d", tt.w, tt.h, got, tt.want)
		}
	}
}

// An image counts by its dimensions, wherever it is and however long its base64 is.
func TestEstimateMessage(t *testing.T) {
	t.Parallel()
	image := Part{
		Kind: PartImage, Bytes: 1_200_000, Width: 1000, Height: 500,
		Raw: []byte(`{"type":"image","source":{"data":"` + encoded(1_200_000) + `"}}`),
	}
	shot := Message{Role: RoleUser, Parts: []Part{image, {Kind: PartText, Text: "what is this?"}}}
	if n := EstimateMessage(shot); n < 600 || n > 800 {
		t.Errorf("a pasted image is %d tokens", n)
	}
	nested := Message{
		Role:  RoleTool,
		Parts: []Part{{Kind: PartToolResult, CallID: "a", Content: []Part{{Kind: PartText, Text: "here"}, image}}},
	}
	if n := EstimateMessage(nested); n < 600 || n > 800 {
		t.Errorf("a screenshot is %d tokens", n)
	}
	opaque := Message{
		Role:  RoleAssistant,
		Parts: []Part{{Kind: PartOpaque, Raw: []byte(`{"type":"web","encrypted":"` + encoded(100_000) + `"}`)}},
	}
	if n := EstimateMessage(opaque); n > 100 {
		t.Errorf("an opaque block is %d tokens", n)
	}
	call := callMessage("", "a", "write", `{"text":"`+strings.Repeat("word ", 1000)+`"}`)
	if n := EstimateMessage(call); n < 1000 || n > 1100 {
		t.Errorf("a call with 1000 words is %d tokens", n)
	}
	pdf := Message{Role: RoleUser, Parts: []Part{{Kind: PartFile, MediaType: "application/pdf", Bytes: 200_000}}}
	if n := EstimateMessage(pdf); n < 4000 || n > 8000 {
		t.Errorf("a PDF of three pages is %d tokens", n)
	}
}

func TestEstimateItem(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("word ", 5000)
	m := Message{Role: RoleTool, Parts: []Part{{
		Kind: PartToolResult, CallID: "a",
		Content: []Part{{Kind: PartText, Text: big}, {Kind: PartText, Text: "small"}},
	}}}
	whole := EstimateItem(ContextItem{Message: &m})
	if whole != EstimateMessage(m) {
		t.Errorf("without edits %d, as a message %d", whole, EstimateMessage(m))
	}
	for _, tt := range []struct {
		edit Edit
		want int
	}{
		{Edit{Content: -1, Op: EditReplace, Text: "short"}, messageOverhead + partOverhead + 1},
		{Edit{Content: 0, Op: EditReplace, Text: "short"}, messageOverhead + partOverhead + 2},
		{Edit{Content: 0, Op: EditDrop}, messageOverhead + partOverhead + 1},
		{Edit{Content: -1, Op: EditDrop}, messageOverhead},
	} {
		if got := EstimateItem(ContextItem{Message: &m, Edits: []Edit{tt.edit}}); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.edit, got, tt.want)
		}
	}
	m.Tokens = 77
	if got := EstimateItem(ContextItem{Message: &m}); got != 77 {
		t.Errorf("the stored estimate is not used: %d", got)
	}
	if got := EstimateItem(ContextItem{Made: &Made{Role: RoleUser, Text: big}}); got < 5000 || got > 5100 {
		t.Errorf("a made message of 5000 words is %d", got)
	}
}

func BenchmarkEstimateText(b *testing.B) {
	countTokens("") // the vocabulary is there
	for _, name := range []string{"english", "code", "chinese", "base64"} {
		for _, size := range []int{4 << 10, 100_000, 2_000_000} {
			text := texts[name]
			for len(text) < size {
				text += text
			}
			text = text[:runeStart(text, size)]
			b.Run(fmt.Sprintf("%s/%dKB", name, size/1000), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					EstimateText(text)
				}
			})
		}
	}
}

// Reasoning that is only a signature costs what was thought, and a thought with its signature is not counted twice.
func TestEstimateSealedReasoning(t *testing.T) {
	t.Parallel()
	reasoning := func(raw string) int {
		var fields struct{ Thinking string }
		if err := json.Unmarshal([]byte(raw), &fields); err != nil {
			t.Fatal(err)
		}
		return estimatePart(Part{Kind: PartReasoning, Text: fields.Thinking, Raw: json.RawMessage(raw)})
	}
	thought := strings.Repeat("I have to look at the parser first, and then at its tests. ", 30)
	signature := encoded(174 + len(thought)) // 232 chars and four for three bytes
	exact := EstimateText(thought)
	for name, raw := range map[string]string{
		"a signature alone": quoted(map[string]string{"type": "thinking", "thinking": "", "signature": signature}),
		"with its thought":  quoted(map[string]string{"type": "thinking", "thinking": thought, "signature": signature}),
		"redacted":          quoted(map[string]string{"type": "redacted_thinking", "data": signature}),
		"encrypted": quoted(map[string]any{
			"type": "reasoning", "id": "rs_1", "summary": []string{},
			"encrypted_content": signature,
		}),
	} {
		if got := reasoning(raw); got < exact*8/10 || got > exact*12/10 {
			t.Errorf("%s: %d tokens, want about %d", name, got, exact)
		}
	}
	if got := reasoning(`{"type":"thinking","thinking":"","signature":""}`); got != 0 {
		t.Errorf("nothing at all: %d tokens", got)
	}
	if got := estimatePart(Part{
		Kind: PartReasoning, Text: thought,
		Raw: json.RawMessage(quoted(thought)),
	}); got != exact {
		t.Errorf("a thought without a signature: %d tokens, want %d", got, exact)
	}
}
