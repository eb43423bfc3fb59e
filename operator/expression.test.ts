import { describe, expect, test } from '@jest/globals'
import { checkExpression } from './expression.ts'

describe('checkExpression', () => {
  test.each(['request.method == "GET"', 'response.code >= 500', 'llmRequest.model', 'flatten(jwt)', 'mcp.tool.name == "echo"', 'default(metadata.a, "b")'])(
    '%s is fine',
    (expression) => expect(checkExpression(expression)).toBeUndefined(),
  )

  test.each<[string, RegExp]>([
    ['request.method ==', /^line 1, column 18: /],
    ['true &&\n  reqest.method == "GET"', /^line 2, column 3: .*reqest/],
    ['shout(request.path)', /^line 1, column 1: .*shout/],
    ['request.path.matches("(")', /^line 1, column \d+: /],
  ])('%j: %s', (expression, expected) => expect(checkExpression(expression)).toMatch(expected))
})
