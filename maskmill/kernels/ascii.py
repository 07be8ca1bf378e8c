"""Names of the ASCII bytes that kernels compare with, where `text[i] == 0x7B` would need a table beside it."""

TAB = 0x09
NEWLINE = 0x0A
CARRIAGE_RETURN = 0x0D
SPACE = 0x20

EXCLAMATION = ord("!")
DOUBLE_QUOTE = ord('"')
HASH = ord("#")
DOLLAR = ord("$")
PERCENT = ord("%")
AMPERSAND = ord("&")
APOSTROPHE = ord("'")
OPEN_PAREN = ord("(")
CLOSE_PAREN = ord(")")
ASTERISK = ord("*")
PLUS = ord("+")
COMMA = ord(",")
HYPHEN = ord("-")
PERIOD = ord(".")
SLASH = ord("/")

ZERO = ord("0")
ONE = ord("1")
TWO = ord("2")
THREE = ord("3")
NINE = ord("9")

COLON = ord(":")
SEMICOLON = ord(";")
LESS_THAN = ord("<")
EQUALS = ord("=")
GREATER_THAN = ord(">")
QUESTION = ord("?")

UPPER_A = ord("A")
UPPER_H = ord("H")
UPPER_R = ord("R")
UPPER_T = ord("T")
UPPER_Z = ord("Z")
LOWER_CASE = 0x20  # the bit by which a lower-case letter differs from its upper-case form

OPEN_BRACKET = ord("[")
BACKSLASH = ord("\\")
CLOSE_BRACKET = ord("]")
CARET = ord("^")
UNDERSCORE = ord("_")

LOWER_A = ord("a")
LOWER_C = ord("c")
LOWER_D = ord("d")
LOWER_F = ord("f")
LOWER_N = ord("n")
LOWER_X = ord("x")
LOWER_Z = ord("z")

OPEN_BRACE = ord("{")
PIPE = ord("|")
CLOSE_BRACE = ord("}")
TILDE = ord("~")
DELETE = 0x7F

NOT_ASCII = 0x80  # the first byte value that is not ASCII: all bytes of longer UTF-8 characters are at least that
