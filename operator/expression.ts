import { compile, environments, formatDiagnostic, isParseError, type Environment, type Phase } from '#api/cel/index.ts'

/** A variable of any place is one. */
const anywhere: Environment = {
  variables: new Set(Object.values(environments).flatMap(({ variables }) => [...(variables ?? [])])),
  hasFlatten: true,
}

/** What is wrong with an expression, with the position in it; undefined when it compiles. Without `phase` it may be for any place. */
export function checkExpression(expression: string, phase?: Phase): string | undefined {
  const result = compile(expression, phase === undefined ? anywhere : environments[phase])
  return isParseError(result) ? result.problems.map(formatDiagnostic).join('; ') : undefined
}
