import { compile, environments, formatDiagnostic, isParseError, type Environment } from '#api/cel/index.ts'

/** Policies say not where an expression is evaluated, so a variable of any place is one; the data plane knows the place. */
const anywhere: Environment = {
  variables: new Set(Object.values(environments).flatMap(({ variables }) => [...(variables ?? [])])),
  hasFlatten: true,
}

/** What is wrong with an expression, with the position in it; undefined when it compiles. */
export function checkExpression(expression: string): string | undefined {
  const result = compile(expression, anywhere)
  return isParseError(result) ? result.problems.map(formatDiagnostic).join('; ') : undefined
}
