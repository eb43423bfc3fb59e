import { compile, environments, findSyntaxProblem, formatDiagnostic, isParseError, type Phase } from '#api/cel/index.ts'

/**
 * What is wrong with an expression, with the position in it; undefined when nothing is. Without `phase` that is its syntax; with one, all that
 * makes it, or a part of it, fail there whenever it is evaluated: unknown variables and functions, patterns that are none.
 */
export function checkExpression(expression: string, phase?: Phase): string | undefined {
  if (phase === undefined) {
    const problem = findSyntaxProblem(expression)
    return problem && formatDiagnostic(problem)
  }
  const result = compile(expression, environments[phase])
  return isParseError(result) ? result.problems.map(formatDiagnostic).join('; ') : undefined
}
