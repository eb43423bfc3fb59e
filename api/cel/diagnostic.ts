/** A problem found when an expression is compiled. Messages quote the expression, never data. */
export interface Diagnostic {
  readonly message: string
  /** Offset into the source in UTF-16 units. */
  readonly offset: number
  /** One-based. */
  readonly line: number
  /** One-based, in UTF-16 units. */
  readonly column: number
}

/** Turns an offset into the line and column that editors show. */
export function diagnose(source: string, offset: number, message: string): Diagnostic {
  const before = source.slice(0, offset)
  const line = before.split('\n').length
  return { message, offset, line, column: offset - (before.lastIndexOf('\n') + 1) + 1 }
}

/** The form for statuses and logs: `line 1, column 9: unknown variable "reqest"`. */
export function formatDiagnostic({ line, column, message }: Diagnostic): string {
  return `line ${line}, column ${column}: ${message}`
}

/** Thrown by the lexer and the parser, caught by `compilePermissive` and `findSyntaxProblem`. */
export class SyntaxProblem extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}
