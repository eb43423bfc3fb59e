import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { BackendRef, Route, TcpRoute } from '#gen/config/types.ts'
import { UsedRefs } from './used-refs.ts'

const ref: fc.Arbitrary<BackendRef> = fc.constantFrom(
  { service: 'ns/a', port: 80 },
  { service: 'ns/a', port: 81 },
  { service: 'ns/b', port: 80 },
  { backend: 'ns/a' },
  { address: 'a:80' },
  { invalid: 'BACKEND_NOT_FOUND' as const },
)
const mirrors = fc.option(
  ref.map((backend) => [{ backend, numerator: 1, denominator: 1 }]),
  { nil: undefined },
)
const route = fc
  .record({ key: fc.constantFrom('r', 's', 't'), refs: fc.array(fc.tuple(ref, mirrors), { maxLength: 3 }), ofRule: mirrors })
  .map(({ key, refs, ofRule }) => {
    const backends = refs.map(([to, of]) => ({ ref: to, ...(of && { mirrors: of }) }))
    return { key, backends, ...(ofRule && { filters: { mirrors: ofRule } }) } as unknown as Route
  })
const version = fc.record({ routes: fc.array(route, { maxLength: 4 }), tcpRoutes: fc.array(route, { maxLength: 2 }) })

test('references that follow edits are those of all routes', () => {
  fc.assert(
    fc.property(fc.array(version, { maxLength: 8 }), fc.infiniteStream(fc.boolean()), (versions, isKept) => {
      const used = new UsedRefs()
      let last: { routes: ReadonlyMap<string, Route>; tcpRoutes: ReadonlyMap<string, TcpRoute> } = { routes: new Map(), tcpRoutes: new Map() }
      for (const { routes, tcpRoutes } of versions) {
        // Some routes stay as they are.
        const keep = <R extends { readonly key: string }>(before: ReadonlyMap<string, R>, now: readonly R[]): ReadonlyMap<string, R> =>
          new Map(now.map((each) => [each.key, (isKept.next().value === true ? before.get(each.key) : undefined) ?? each]))
        last = { routes: keep(last.routes, routes), tcpRoutes: keep(last.tcpRoutes, tcpRoutes as unknown as TcpRoute[]) }
        const all = [...last.routes.values(), ...last.tcpRoutes.values()] as Route[]
        const expected = all.flatMap(({ backends = [], filters }) => [
          ...backends.flatMap((backend) => [backend.ref, ...(backend.mirrors ?? []).map((mirror) => mirror.backend)]),
          ...(filters?.mirrors ?? []).map((mirror) => mirror.backend),
        ])
        const texts = used.update(last).map((each) => JSON.stringify(each))
        expect(new Set(texts)).toEqual(new Set(expected.map((each) => JSON.stringify(each))))
        expect(texts.length).toBe(new Set(texts).size)
      }
    }),
  )
})
