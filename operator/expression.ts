import { anywhere, compile, environments, formatDiagnostic, isParseError, type Phase } from '#api/cel/index.ts'

/** What is wrong with an expression, with the position in it; undefined when it compiles. Without `phase` it may be for any place. */
export function checkExpression(expression: string, phase?: Phase): string | undefined {
  const result = compile(expression, phase === undefined ? anywhere : environments[phase])
  return isParseError(result) ? result.problems.map(formatDiagnostic).join('; ') : undefined
}
