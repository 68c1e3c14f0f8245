package pipeline

import "testing"

// limitSentences set a limit.
var limitSentences = []string{
	"NEVER touch prod-db keep-9912",
	"NEVER deploy on Fridays.",
	"Please do not delete anything under /var.",
	"Don't push to main!",
	"Dont use the old API.",
	"Always run the linter before you commit.",
	"You must ask me first.",
	"Only edit files in src/.",
	"Leave the migrations alone.",
	"No new dependencies.",
	"Keep responses at most 200 ms.",
	"The API key must not appear in any log.",
	"I want you to never call this twice.",
	"We should not break the public API.",
	"Avoid global state.",
	"Make sure the tests pass.",
	"As a rule, don't push on Fridays.",
	"If it fails, do not retry.",
	"But please don't touch the docs.",
	"Run it (no sudo!).",
	"Niemals auf main pushen!",
	"Bitte lösche keine Dateien.",
	"Du darfst die Datenbank nicht ändern.",
	"Nutze nur die Standardbibliothek.",
	"Ne touchez pas à la production.",
	"N'utilise jamais sudo.",
	"Il faut demander avant chaque déploiement.",
	"Nunca borres datos de clientes.",
	"No uses librerías externas.",
	"Nunca apague os registros.",
	"Não altere o esquema.",
	"Non modificare il file di configurazione.",
	"Nooit naar productie deployen.",
	"Никогда не удаляй миграции.",
	"Не трогай папку vendor.",
	"不要修改数据库结构。",
	"必须先运行测试。",
	"本番環境には絶対に触らないでください。",
	"テストを必ず実行すること。",
	"절대 main 브랜치에 푸시하지 마세요.",

	// As people say it beside the work.
	"You may add go.sum, that one file and nothing else in there.",
	"You may change the parser, but only in src/lexer.",
	"Rename it without changing the public API.",
	"When you are done do not push.",
	"If the build breaks never force-push to fix it.",
	"We never commit generated files.",
	"I don't want you to touch the CI config.",
	"I would like only one commit at the end.",
	"The keys never leave the server.",
	"It is slow, don't rewrite it for that.",
	"Work on a branch - never on main directly.",
	"Fix the tests, not the code under test.",
	"Use `always()` in the workflow but never in the release job.",
	"Everything except the vendor folder may change.",
	"Keep the error texts as they are.",
	"Stay out of infra/.",
	"Refactor it as you like, unless it changes the wire format.",
	"Treat config/ as read only.",
	"The staging numbers are confidential.",
	"Commit messages in English, always.",
	"Not before the release is out, please.",
	"You always ask before you install something.",
	"Tips:\n1. Always start with a test.",
	"I really don't want to be asked twice.",
	"Remember, you can only use one tool at a time.",
	"Die Migrationen nie anfassen.",
	"Die Schnittstelle bitte nicht ändern.",
	"Ändere nichts außer der README.",
	"Antworte immer auf Deutsch.",
	"Surtout pas de migration cette semaine.",
	"Ne change rien dans le dossier legacy, sauf les tests.",
	"La clé ne doit jamais apparaître dans les logs.",
	"Usa solo la biblioteca estándar.",
	"No toques nada más.",
	"Só mexa na pasta api, mais nada.",
	"Usa sempre i tipi esistenti, senza aggiungere dipendenze.",
	"Gebruik alleen de bestaande endpoints.",
	"Nigdy nie usuwaj danych klientów.",
	"Отвечай только на русском.",
	"Ключ нельзя показывать в логах.",
	"只能改 src 目录。",
	"别动配置文件。",
	"変更は src だけにして。",
	"항상 테스트를 먼저 실행해 주세요.",
}

// Sentences that set a limit, in many languages.
func TestSetsLimit(t *testing.T) {
	t.Parallel()
	for _, s := range limitSentences {
		t.Run(s, func(t *testing.T) {
			if !setsLimit(s) {
				t.Error("is taken for a sentence without a limit")
			}
		})
	}
}

// otherSentences set none: they report, ask, or are pasted.
var otherSentences = []string{
	"The build fails.",
	"Add a parser for dates.",
	"I don't know why it fails.",
	"It does not compile.",
	"Why does it not work?",
	"Must I run the migrations?",
	"The test is not green.",
	"No.",
	"No, it is fine.",
	"It fails, not sure why.",
	"It fails, no idea why.",
	"If it does not work I will look.",
	"Ich weiß nicht, warum.",
	"Das geht nicht.",
	"Füge einen Parser hinzu.",
	"Je ne sais pas.",
	"Ajoute un test.",
	"No sé por qué falla el test, ¿tú sí?",
	"Я не знаю.",
	"这个不能运行。",
	"これは動かない。",
	"Fix the login page and show me the diff.",

	// What happens, and when.
	"It hangs now and then, always around a retry.",
	"Always around a retry.",
	"main.go is not formatted.",
	"The output of the second table is not formatted.",
	"It only happens on CI.",
	"The tests always pass locally.",
	"CI never finishes.",
	"Tests fail, only on Windows.",
	"Output only shows the first line.",
	"We never found out why.",
	"I always get a timeout after two minutes.",
	"I only saw it twice.",
	"It must be the cache.",
	"There must be a mistake somewhere.",
	"That should not happen.",
	"This may or may not be related.",
	"It took at least five seconds.",
	"All is fine, as always.",
	"Thanks, that is always appreciated.",
	"No luck so far.",
	"No output at all.",
	"No tables currently exist.",
	"Don't worry about the old tests.",
	"Don't know why, honestly.",
	"It was just me, not three of us.",
	"Thus not gathering the final result.",
	"Works without the flag.",
	"The server never returns a body.",
	"You don't have to write tests for it.",
	"Never mind, found it.",
	"Still not working.",
	"The prompt finished, but no commit was made.",
	"Der Test schlägt immer fehl.",
	"Es passiert nur nachts.",
	"Der Server läuft nicht.",
	"Das muss am Cache liegen.",
	"Le test échoue toujours.",
	"Ça marche seulement en local.",
	"Tu n'avais pas les droits.",
	"El test siempre falla.",
	"Siempre falla en CI.",
	"Sin embargo el log lo muestra.",
	"O teste sempre falha.",
	"Il test non funziona.",
	"De test werkt niet.",
	"Тест всегда падает.",
	"У меня не работает.",
	"它总是报错。",
	"特别慢。",
	"总是失败。",
	"必ず失敗する。",
	"テストだけ落ちる。",
	"항상 오류가 발생합니다.",

	"If you can't find it, look in the other repo.",
	"It works when you don't use the flag.",
	"You don't understand.",
	"My user with view only permissions sees it now.",
	"Look at the test under internal/sem.",

	// What is pasted.
	`"value": "no-cors"`,
	"614 | // Do NOT clear the draft here",
	"| never | always |",
	"> You must not reply to this address.",
	"// callers must never pass nil",
	"Error: no such file or directory, open 'package.json'",
	"uv run --no-project --with x",
	"The `--no-project` flag is there.",
}

// What tells, asks, or is pasted, sets none, whatever words are in it.
func TestSetsNoLimit(t *testing.T) {
	t.Parallel()
	for _, s := range otherSentences {
		t.Run(s, func(t *testing.T) {
			if setsLimit(s) {
				t.Error("is taken for a limit")
			}
		})
	}
}
