package pipeline

import (
	"slices"
	"strings"
)

// The words, by their effect. Each list has the languages one after the other. No word is included that has another
// meaning in another language of the list.
var (
	// obliging words set a limit in any clause.
	obliging = phrases(
		"must|mustn't|shall not|shan't|should not|shouldn't|should only|should never|should always|may not|may "+
			"only|can only be|forbidden|prohibited",
		"not allowed|not permitted|not negotiable|not acceptable|not optional|not to be|never to be|only to be|no "+
			"more than|no later than",
		"off limits|off-limits|under no circumstances|at all costs|hands off|hands-off|confidential|make sure|ensure",
		"without asking|without my|without our|without approval|without permission|ask me|ask us|ask first|ask "+
			"before|check with me",
		"nothing else|nobody else|no one else|nowhere else",
		"keinesfalls|auf keinen fall|auf gar keinen "+
			"fall|darf|darfst|dürfen|dürft|muss|musst|müssen|müsst|sollst|ausschließlich|verboten|unbedingt|sonst "+
			"nichts",
		"il faut|il ne faut|doit|doivent|interdit|interdite|sans demander|sans mon accord|surtout pas|rien de autre",
		"debes|debe|deben|prohibido|prohibida|sin preguntar|hay que|tienes que|nada más",
		"deve|devem|proibido|proibida|sem perguntar|mais nada|devi|devono|vietato|vietata|senza chiedere",
		"moet|moeten|nie wolno|musisz|nic "+
			"więcej|yasak|mutlaka|нельзя|обязательно|должен|должна|должно|должны|больше ничего",
	)
	obligingStems = stems(
		"запрещ", "不要|不得|不许|不許|禁止|绝不|絕不|必须|必須|务必|務必|只准|仅限|僅限|一定要|切勿|请勿|請勿|严禁|嚴禁",
		"しないで|するな|ないでください|いけません|いけない|べからず|触らない|禁じ|てはならない",
		"하지 마|하지마|마세요|마십시오|금지|해야", "يجب|ممنوع|لا ت", "कभी नहीं|कभी भी|ज़रूर",
	)
	// addressing words oblige at the start of a clause, but not inside one, as in "if you don't".
	addressing = phrases("you can only|you can't|you cannot|you can not|you won't|you will not|you do not|you " +
		"don't|you only|you never|you always|tu ne|du nie")
	// adverbs, like the other limiting words, set a limit if their clause reports nothing.
	adverbs = phrases(
		"never|always|only|nie|niemals|immer|nur|jamais|toujours|seulement|uniquement|nunca|jamás|siempre|solo|"+
			"sólo|solamente|únicamente",
		"sempre|só|apenas|somente|mai|soltanto|nooit|altijd|alleen|nigdy|zawsze|tylko|asla|her "+
			"zaman|sadece|никогда|всегда|только",
	)
	// absolute are the adverbs that make a rule even of a statement about things: "the keys never leave the server".
	absolute = phrases(
		"never|always|nie|niemals|immer|jamais|toujours|nunca|jamás|siempre|sempre|mai|nooit|altijd|nigdy|zawsze|" +
			"asla|her zaman|никогда|всегда",
	)
	limiting = phrases(
		"do not|don't|dont|no|not|except|unless|without|avoid|refrain|at most|at least|read only|read-only|keep "+
			"out|keep away|stay out|stay away",
		"nicht|nichts|kein|keine|keinen|keinem|keiner|ohne|außer|höchstens|mindestens|ne|pas|aucun|aucune|sauf|"+
			"sans|salvo|excepto|sin",
		"não|nao|sem|non|senza|tranne|niet|geen|zonder|не|без|кроме",
	)
	limitingStems = stems("不能|只能|永远不|永不|总是|總是|不可|勿|别|別", "必ず|絶対|決して|のみ|だけ|ないで", "반드시|절대|항상", "دائم|أبد|فقط",
		"हमेशा|केवल|सिर्फ")
	// leave and leaving are the words of orders to leave things as they are.
	leave, leaving = phrases("leave|keep"), phrases("alone|as is|as it is|as they are|untouched|unchanged|out of")

	// aside are phrases in which the words do not have their usual meaning.
	aside = phrases(
		"never mind|as always|almost always|nearly always|not always|always been|always the same|always "+
			"appreciated|not only|if only|only just|the only|only one left",
		"no longer|not just|not sure|not yet|not really|not quite|not too|not that|not even|no idea|no problem|no "+
			"luck|no clue|no worries|no rush|no need|no wonder",
		"no doubt|no matter|no such|no one|no way|no thanks|no thank you|why not|or not|if not|may or may "+
			"not|leave me alone|if need be",
		"there must be|must have been|must have changed|must have broken|must have missed|must have "+
			"forgotten|must have gone|must have happened|must have got|i must",
		"must be a mistake|must be a bug|must be the|must be something|must be some|must be due|must be "+
			"because|must be related|must be wrong|must be missing",
		"may not be|may not have|may not work|may not matter|may not need|may not even|may not exist|just to make "+
			"sure|want to make sure i|to make sure i|let us ensure",
		"should not happen|shouldn't happen|should not matter|shouldn't matter|should not take|shouldn't "+
			"take|shouldn't be possible|shouldn't be so|should not be so",
		"you don't need|you do not need|you don't have to|you do not have to|you always forget|you never said|you "+
			"don't say|nothing else happened|nothing else changed",
		"immer wieder|immer noch|wie immer|noch nie|noch nicht|nur noch|nicht nur|fast immer|immer mehr|nicht "+
			"mehr|nicht sicher|keine ahnung|kein problem",
		"ich muss|muss am|muss an|muss wohl|muss irgendwie|muss daran|nicht so",
		"pas sûr|pas encore|pas de souci|pas de problème|toujours pas|comme toujours|presque toujours|pas "+
			"seulement|non seulement|je dois|ça doit|doit être le|doit être la|doit être lié",
		"no solo|no sólo|casi siempre|como siempre|siempre que|no hace falta|debe ser el|debe ser la|debe ser "+
			"un|debe ser una|debe haber|sin embargo|hay que ver",
		"quase sempre|como sempre|não só|sempre que|deve ser o|deve ser a|deve ser um|deve ser uma|sem "+
			"problema|quasi sempre|come sempre|non solo|non so|deve essere|senza problemi",
		"bijna altijd|zoals altijd|niet alleen|moet wel|het moet|ik moet|prawie zawsze|jak zawsze|nie tylko|tylko że",
		"не только|только что|как всегда|почти всегда|должно быть|не уверен|не уверена",
	)
	asideStems = stems("不可能|特别|特別|区别|區別|分别|分別|级别|类别|類別|识别|識別|性别|别的|別的|別に|別の|個別|只能说|只能說")

	// conjunctions and fillers are in front of a clause and do not change it.
	conjunctions = phrases(
		"and|but|so|or|then|also|please|just|actually|really|well|ok|okay|oh|ah|hm|hmm|yes|sorry|basically|"+
			"honestly|currently|anyway",
		"und|aber|oder|bitte|y|pero|por favor|et|mais|e|mas|ma|en|maar|и|но|а|пожалуйста")
	// pronouns and similar words begin a statement or a question.
	pronouns = phrases(
		"i|we|it|he|she|they|there|that|this|why|what|how|where|who|which|because|since|although|is|are|was|were|"+
			"does|did|can|could|would|will",
		"still|looks|seems|works|fails|runs|crashes|hangs|happens|same|got|getting|tried|saw|thus|nothing",
		"i'm|i've|i'd|i'll|it's|that's|there's|what's|we're|we've|they're|he's|she's|you're|here's",
		"ich|wir|es|er|sie|das|dies|warum|wieso|weshalb|wie|wo|wer|ist|sind|hat|leider|weil",
		"je|nous|il|elle|ils|ça|ca|cela|ce|pourquoi|comment|yo|nosotros|él|ella|eso|esto|por qué|porque|cómo",
		"eu|nós|ele|ela|isso|isto|por que|como|io|noi|lui|lei|questo|perché|ik|wij|het|dat|dit|waarom|hoe",
		"я|мы|он|она|оно|они|это|почему|как",
	)
	pronounStems = stems("我|它|他|她|这|這|那|为什么|為什麼|怎么|怎麼|如果|私|僕|これ|それ|なぜ|どうして")
	// subordinate clauses may be followed by an order without a comma.
	subordinate = phrases("if|when|while|wenn|si|quand|cuando|quando|se|als|если|когда")
	running     = phrases("do not|don't|never|always|nie|niemals|jamais|nunca|siempre|никогда")
	// wanting: the speaker's wishes, and what a team does, are limits nevertheless.
	wanting = phrases(
		"want|wants|i'd like|would like|prefer|i'd rather|would rather|need|möchte|quiero|quero|voglio|veux|wil|хочу")
	norms = phrases("we never|we always|we only|we do not|we don't")
	// articles begin a statement, unless it is an order with its object first, as in German.
	articles = phrases(
		"the|a|an|my|our|your|his|her|their|these|those|some|most|every|each",
		"le|la|les|un|une|mon|mes|el|los|las|una|mi|o|os|um|uma|meu|minha|lo|gli|de|een|mijn",
		"der|die|den|dem|ein|eine|einen|mein|meine|unser|unsere",
	)
	germanArticles = phrases("der|die|den|dem|ein|eine|einen|mein|meine|unser|unsere")
	germanModals   = phrases("kann|kannst|können|konnte|konnten|will|wollen|wollte|werden|wurden|wird|würde|sind|ist")

	// happenings beside a limiting word make the clause a report.
	happenings = phrases(
		"fails|failed|failing|works|worked|crashes|crashed|hangs|hung|happens|happened|happening|occurs|occurred|"+
			"appears|appeared|shows|showed|showing",
		"returns|returned|returning|prints|printed|finishes|finished|ends|ended|complains|breaks|broke|takes|took|"+
			"gets|got|saw|seen|found|heard|knew|thought",
		"had|has|was|were|is|are|been|did|does|went|came|made|said|noticed|understood|managed|reached|loads|loaded|"+
			"starts|started|stopped|compiles|passes|passed",
		"sees|exists|existed|seems|seemed|mattered|used|tried|triggers|sure|enough",
		"ist|sind|war|waren|hat|haben|klappt|weiß|verstehe|sehe|fehl",
		"marche|marchent|fonctionne|fonctionnent|échoue|échouent|plante|plantent|arrive|est|sont|était|avais|avait|"+
			"avons|avez|suis|sais|comprends|vois|compile|passe|passent",
		"funciona|funcionan|sé|entiendo|puedo|hay|es|está|están|sale|falla|fallan|pasa|ocurre|compila|encuentro|"+
			"veo|sirve|tengo|era|fue|aparece",
		"falha|falham|sei|consigo|há|é|acontece|vejo|tenho|foi|entendo|funziona|funzionano|fallisce|falliscono|"+
			"capisco|riesco|è|succede|trovo|vedo",
		"werkt|faalt|zijn|gaat|gebeurt|hangt|weet|snap|zie|heb|heeft|crasht|działa|działają|wiem|jest|są|pada|"+
			"padają|widzę|rozumiem|çalışıyor|oluyor",
		"падает|падают|работает|работают|знаю|понимаю|вижу|происходит|случается|выдаёт|выдает|возвращает|"+
			"компилируется|запускается|получается",
		"был|была|было|могу|помогло|понятно",
	)
	// bare forms of such verbs do so only behind a subject: "tests never pass", unlike "never pass nil".
	bare = phrases(
		"fail|work|crash|hang|happen|occur|appear|show|return|print|finish|end|complain|break|take|get|see|find|" +
			"hear|load|start|stop|compile|pass|run|exist|have|match|know|seem")
	// minds are verbs of thinking, which no order to the agent is about.
	minds = phrases("know|think|understand|remember|believe|care|worry|bother|mind|get it|see why|see how|have " +
		"time|have to|need to|feel")
	// germanHappenings: in German the verb is far from the word that limits.
	germanHappenings = phrases(
		"schlägt|schlagen|funktioniert|funktionieren|läuft|passiert|tritt|hängt|stürzt|geht|liegt|kommt|bricht")
	happeningStems = stems("失败|失敗|报错|報錯|出错|出錯|崩溃|崩潰|出现|出現|発生|エラー|落ちる|落ちます|おかしい|動かない", "실패|오류|발생|안 돼")
	// auxiliaries in front of "not" make a report, and so does what follows "no".
	auxiliaries = phrases(
		"is|are|was|were|am|be|does|did|has|have|had|could|would|will|it's|that's|i'm|they're|clearly|ist|sind|war|" +
			"hat|kann|konnte|est|es|está|é|è|to")
	absences = phrases(
		"was|were|has|have|had|did|does|exist|exists|existed|found|applied|returned|worked|left|included|available|" +
			"yet|at all|so far|either|here")
	// places and times behind an adverb are what remains of a report, unless an order precedes them.
	places = phrases(
		"in|for|with|from|to|under|inside|within|by|through|via|per|of|one|two|three|a|an|the|some|those|these|my|" +
			"this|that|half|im|in der|bei|en|dans|no|na|в|на")
	times = phrases(
		"around|on|when|after|before|during|while|at|between|since|about|near|once|twice|sometimes|if|because|" +
			"until|then|as|nachts|nach|wenn|après|quand|cuando|después|quando|после|когда")
	// trailing words continue the statement of the clause before.
	trailing = phrases("not|nicht|pas|without|except|unless|at least|at " +
		"most|ohne|außer|sans|sauf|sin|salvo|sem|senza|niet|zonder|не|без|кроме")
)

// phraseSet has phrases by their first word.
type phraseSet map[string][][]string

// phrases returns the set of phrases divided by "|".
func phrases(lists ...string) phraseSet {
	set := phraseSet{}
	for _, phrase := range stems(lists...) {
		words := strings.Fields(phrase)
		set[words[0]] = append(set[words[0]], words)
	}
	return set
}

// stems returns the texts divided by "|".
func stems(lists ...string) []string { return strings.Split(strings.Join(lists, "|"), "|") }

// at returns the length in words of the longest phrase that begins at words[i], 0 for none.
func (s phraseSet) at(words []string, i int) int {
	longest := 0
	if i < 0 || i >= len(words) {
		return 0
	}
	for _, phrase := range s[words[i]] {
		if n := len(phrase); n > longest && i+n <= len(words) && slices.Equal(phrase, words[i:i+n]) {
			longest = n
		}
	}
	return longest
}

func (s phraseSet) within(words []string) bool {
	for i := range words {
		if s.at(words, i) > 0 {
			return true
		}
	}
	return false
}

func hasAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

func beginsWithAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(s, p) })
}
