package redact

import (
	"strings"
	"unicode"
)

// secrecy is how certain a name is that its value is a secret.
type secrecy int

const (
	notSecret secrecy = iota
	// weak names have other uses too: their values are secrets if they look like it.
	weak
	// handle names are those of sessions and the like, which are mostly ids.
	handle
	// certain names are those of keys and tokens.
	certain
	// password names are those of passwords, which people choose: any value counts.
	password
)

// endings are how the names of secrets end, in lower case and without separators, in several languages.
var endings = map[secrecy][]string{
	password: {
		"password", "passwd", "passwrd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "geheimwort",
		"motdepasse", "contraseña", "contrasena", "contrasenya", "senha", "palavrapasse", "wachtwoord",
		"lösenord",
		"losenord", "passord", "adgangskode", "kodeord", "salasana", "hasło", "haslo", "heslo", "jelszó",
		"jelszo",
		"parolă", "parola", "lozinka", "geslo", "пароль", "пароля", "парол", "лозинка", "şifre", "sifre",
		"parole",
		"slaptažodis", "parool", "κωδικός", "κωδικόςπρόσβασης", "συνθηματικό", "סיסמה", "סיסמא", "كلمةالمرور",
		"كلمةالسر", "رمزعبور", "गुपितशब्द", "पासवर्ड", "รหัสผ่าน", "mậtkhẩu", "matkhau", "katasandi",
		"katalaluan", "密码",
		"密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호",
		"dbpass", "pgpass", "smtppass", "sshpass", "ftppass", "mysqlpass", "rootpass", "userpass", "adminpass",
		"mailpass", "mypass", "redispass", "ldappass", "loginpass", "vaultpass",
	},
	certain: {
		"secret", "secrets", "apikey", "token", "secretkey", "secretkeybase", "accesskey", "privatekey",
		"authkey", "accountkey",
		"masterkey", "signingkey", "encryptionkey", "encryptkey", "decryptionkey", "sharedkey",
		"sharedaccesskey",
		"servicekey", "sessionkey", "licensekey", "clientkey", "appkey", "applicationkey", "adminkey",
		"credential", "credentials", "jwt", "bearer", "secretaccesskeyid", "phpsessid", "jsessionid",
		"connectsid",
		"aspnetsessionid", "hmackey", "aeskey", "cipherkey", "keypass", "storepass", "subscriptionkey",
		"functionskey",
		"csrf", "xsrf", "webhookurl", "geheimnis", "geheimschlüssel", "zugangsschlüssel", "schlüssel",
		"secreto",
		"segredo", "clavesecreta", "clésecrète", "clésecrete", "clédapi", "cléapi", "jeton",
		"clavedeapi", "claveapi",
		"chavedeapi", "chavesecreta", "chiaveapi", "chiavesegreta", "секрет", "токен", "ключapi", "apiключ",
		"секретныйключ", "密钥", "密鑰", "令牌", "秘密鍵", "トークン", "apiキー", "api키", "토큰",
		"totpseed", "otpseed", "saltkey", "identitykey", "deploykey", "integrationkey", "ingestkey", "writekey",
		"restkey", "sasurl", "apikeys", "passwords", "accesskeys", "secretkeys",
	},
	handle: {"sid", "session", "sessionid", "sessid", "sess", "nonce"},
	weak: {
		"auth", "authorization", "cookie", "cookies", "pass", "pw", "pin", "otp", "totp", "cvv", "cvc",
		"creds", "clave",
		"clau", "clé", "chave", "chiave", "ключ", "mdp", "mfa", "passkey", "salt", "pepper",
	},
}

// whole are endings that count only as a whole word: they end other words too.
var whole = map[string]bool{
	"auth": true, "pass": true, "pw": true, "pin": true, "otp": true, "sid": true, "jwt": true, "salt": true,
	"pepper": true, "nonce": true, "cvv": true, "cvc": true, "mfa": true, "mdp": true, "clé": true,
	"clave": true,
	"clau":  true, "chave": true, "chiave": true, "ключ": true, "creds": true, "csrf": true, "xsrf": true,
	"cookie": true, "cookies": true, "parole": true, "parola": true, "geslo": true, "heslo": true,
	"парол":     true,
	"schlüssel": true, "jeton": true, "totp": true, "bearer": true, "secrets": true, "credentials": true,
	"session": true, "sess": true, "restkey": true, "appkey": true, "암호": true, "passkey": true,
	"parool": true, "totpseed": true,
}

// ordinary are endings of names whose values are not secret although another ending is in them.
var ordinary = []string{
	"storagekey", "pagetoken", "nexttoken", "continuationtoken", "synctoken", "cancellationtoken",
	"canceltoken", "stoptoken",
	"eostoken", "bostoken", "padtoken", "unktoken", "septoken", "clstoken", "masktoken", "specialtoken",
	"endtoken",
	"starttoken", "pertoken", "maxtoken", "mintoken", "lasttoken", "firsttoken", "currenttoken", "tokentoken",
	"cursortoken", "mintoken", "outputtoken", "inputtoken", "prevtoken", "previoustoken", "thistoken",
	"eachtoken",
	"onetoken", "syntaxtoken", "colortoken", "designtoken", "spltoken", "nosecret", "inputpassword", "noauth",
	"requireauth", "needsauth", "hasauth", "isauth", "usepassword", "haspassword", "forgotpassword",
	"resetpassword",
	"showpassword", "ispassword", "requirepassword", "gettoken", "istoken", "hastoken", "parsetoken",
	"peektoken",
}

// suffixes are words behind a name that say nothing of its kind.
var suffixes = map[string]bool{
	"value": true, "val": true, "b64": true, "base64": true, "plain": true, "plaintext": true,
	"raw": true, "dev": true,
	"prod": true, "production": true, "staging": true, "test": true, "live": true, "old": true, "new": true,
	"current": true, "hash": true, "hashed": true, "encrypted": true, "enc": true, "confirm": true,
	"confirmation": true, "again": true, "repeat": true, "primary": true, "secondary": true, "here": true,
}

// endingOf finds the longest ending of a name. Endings are looked up by their length, so that the cost does not depend
// on their number.
var endingOf = func() map[string]secrecy {
	m := map[string]secrecy{}
	for how, list := range endings {
		for _, e := range list {
			m[e] = how
		}
	}
	for _, e := range ordinary {
		m[e] = notSecret
	}
	return m
}()

var longestEnding = func() int {
	n := 0
	for e := range endingOf {
		n = max(n, len(e))
	}
	return n
}()

// strength says whether a name is that of a secret. Of several words the last ones count.
func strength(name string) secrecy {
	words := split(name)
	for len(words) > 1 && suffixes[words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return notSecret
	}
	const counted = 4
	words = words[max(0, len(words)-counted):]
	joined := strings.Join(words, "")
	edges := map[int]bool{} // where words begin, from the end
	n := 0
	for i := len(words) - 1; i >= 0; i-- {
		n += len(words[i])
		edges[n] = true
	}
	for size := min(len(joined), longestEnding); size > 0; size-- {
		ending := joined[len(joined)-size:]
		if how, known := endingOf[ending]; known && (!whole[ending] || edges[size]) {
			return how
		}
	}
	return notSecret
}

// split returns the words of a name in lower case, without the digits at their ends: "dbPassword2" are db and
// password.
func split(name string) []string {
	var words []string
	var word []rune
	end := func() {
		w := strings.TrimRightFunc(string(word), unicode.IsDigit)
		if w != "" {
			words = append(words, w)
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
			continue
		case i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, unicode.ToLower(r))
	}
	end()
	return words
}
