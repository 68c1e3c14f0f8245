package rawjson

type numState uint8

const (
	numMinus numState = iota // a digit must follow
	numZero                  // '.', 'e' or the end
	numInt
	numDot // a digit must follow
	numFrac
	numE     // a sign or a digit must follow
	numESign // a digit must follow
	numExp
)

// digit takes the next byte of a number, if it can be one.
func (s *Scanner) digit(c byte) bool {
	isDigit := '0' <= c && c <= '9'
	switch s.number {
	case numMinus:
		switch {
		case c == '0':
			s.number = numZero
		case isDigit:
			s.number = numInt
		}
		return isDigit
	case numInt:
		if isDigit {
			return true
		}
		fallthrough
	case numZero:
		switch c {
		case '.':
			s.number = numDot
			return true
		case 'e', 'E':
			s.number = numE
			return true
		}
		return false
	case numDot:
		if isDigit {
			s.number = numFrac
		}
		return isDigit
	case numFrac:
		if c == 'e' || c == 'E' {
			s.number = numE
			return true
		}
		return isDigit
	case numE:
		if c == '+' || c == '-' {
			s.number = numESign
			return true
		}
		fallthrough
	case numESign:
		if isDigit {
			s.number = numExp
		}
		return isDigit
	}
	return isDigit // numExp
}

func (s *Scanner) numberWhole() bool {
	switch s.number {
	case numZero, numInt, numFrac, numExp:
		return true
	}
	return false
}
