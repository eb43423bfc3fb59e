import { expect, test } from '@jest/globals'
import type { ObjectStatus } from '../model/translation.ts'
import { changeKind } from './kind.ts'

const statusOf = (kind: string, name: string): ObjectStatus => ({ group: 'g', kind, namespace: 'ns', name, status: {} })
const statuses = [statusOf('Gateway', 'a'), statusOf('Gateway', 'b'), statusOf('HTTPRoute', 'a'), statusOf('HTTPRoute', 'b'), statusOf('ProxyPolicy', 'a')]
const describe = (list: readonly ObjectStatus[]): string[] => list.map(({ kind, name, status }) => `${kind} ${name} ${JSON.stringify(status)}`)

test.each(['Gateway', 'HTTPRoute', 'ProxyPolicy'])('the statuses of kind %s alone are changed', (kind) => {
  const changed = changeKind(statuses, kind, (status) => ({ ...status, status: { changed: true } }))
  expect(describe(changed)).toEqual(describe(statuses.map((each) => (each.kind === kind ? { ...each, status: { changed: true } } : each))))
  expect(changed.filter((each) => each.kind !== kind).every((each) => statuses.includes(each))).toBe(true)
})

test('a status is left out', () => {
  const changed = changeKind(statuses, 'HTTPRoute', (status) => (status.name === 'a' ? [] : status))
  expect(describe(changed)).toEqual(describe(statuses.filter((each) => each !== statuses[2])))
})

test.each(['A', 'GRPCRoute', 'ProxyBackend', 'Z'])('a list without kind %s stays as it is', (kind) => {
  expect(changeKind(statuses, kind, () => [])).toBe(statuses)
  expect(changeKind([], kind, () => [])).toEqual([])
})
