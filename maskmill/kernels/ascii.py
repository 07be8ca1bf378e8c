"""Names of the ASCII bytes that kernels compare with, where `text[i] == 0x7B` would need a table beside it."""

TAB, NEWLINE, CARRIAGE_RETURN, SPACE = map(ord, "\t\n\r ")
EXCLAMATION, DOUBLE_QUOTE, HASH, DOLLAR, PERCENT, AMPERSAND, APOSTROPHE = map(ord, "!\"#$%&'")
OPEN_PAREN, CLOSE_PAREN, ASTERISK, PLUS, COMMA, HYPHEN, PERIOD, SLASH = map(ord, "()*+,-./")
ZERO, ONE, TWO, THREE, NINE = map(ord, "01239")
COLON, SEMICOLON, LESS_THAN, EQUALS, GREATER_THAN, QUESTION = map(ord, ":;<=>?")
UPPER_A, UPPER_H, UPPER_R, UPPER_T, UPPER_Z = map(ord, "AHRTZ")
OPEN_BRACKET, BACKSLASH, CLOSE_BRACKET, CARET, UNDERSCORE = map(ord, "[\\]^_")
LOWER_A, LOWER_C, LOWER_D, LOWER_F, LOWER_N, LOWER_R, LOWER_U, LOWER_V, LOWER_X, LOWER_Z = map(ord, "acdfnruvxz")
OPEN_BRACE, PIPE, CLOSE_BRACE, TILDE, DELETE = map(ord, "{|}~\x7f")

LOWER_CASE = 0x20  # the bit by which a lower-case letter differs from its upper-case form
NOT_ASCII = 0x80  # the first byte value that is not ASCII: all bytes of longer UTF-8 characters are at least that
