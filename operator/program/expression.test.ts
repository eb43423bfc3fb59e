import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { runDirectoryMode } from './directory.ts'
import { checkExpression } from './expression.ts'
import type { ReportEvent } from './report.ts'

describe('checkExpression', () => {
  test.each(['request.method == "GET"', 'response.code >= 500', 'llmRequest.model', 'flatten(jwt)', 'mcp.tool.name == "echo"', 'default(metadata.a, "b")'])(
    '%s is fine',
    (expression) => expect(checkExpression(expression)).toBeUndefined(),
  )

  test.each(['reqest.method', 'shout(request.path)', 'request.path.matches("(")'])('%s is good syntax', (expression) =>
    expect(checkExpression(expression)).toBeUndefined(),
  )

  test.each<[string, RegExp]>([
    ['request.method ==', /^line 1, column 18: /],
    ['true &&\n  reqest.method == "GET"', /^line 2, column 3: .*reqest/],
    ['shout(request.path)', /^line 1, column 1: .*shout/],
    ['request.path.matches("(")', /^line 1, column \d+: /],
  ])('%j: %s', (expression, expected) => expect(checkExpression(expression, 'request')).toMatch(expected))
})

const manifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: gw }
spec:
  gatewayClassName: proxy
  listeners: [{ name: http, port: 8080, protocol: HTTP }]
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: rules }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: gw }]
  traffic:
    timeouts: { request: 1s }
    authorization:
      policy: { matchExpressions: ['reqest.method == "GET"'] }
`

test('the status of a policy names the field, the position and the word (traffic.md §14 row 30)', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'expression-'))
  await writeFile(join(directory, 'manifests.yaml'), manifests)
  const events: ReportEvent[] = []
  const mode = await runDirectoryMode({ directory, listen: '127.0.0.1:0', report: (event) => events.push(event) })
  await mode.close()
  await rm(directory, { recursive: true })
  expect(events.filter(({ event }) => event === 'condition' || event === 'error')).toEqual([
    expect.objectContaining({ kind: 'ProxyPolicy', name: 'rules', type: 'Accepted', status: 'True', reason: 'PartiallyValid' }),
  ])
  expect(JSON.stringify(events)).toMatch(/matchExpressions.*line 1, column 1: .*reqest/)
})
