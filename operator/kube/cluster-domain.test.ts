import { expect, test } from '@jest/globals'
import { findClusterDomain, parseClusterDomain } from './cluster-domain.ts'

test.each([
  ['the domain is what follows svc', 'nameserver 10.96.0.10\nsearch infra.svc.corp.example svc.corp.example corp.example host.example\n', 'corp.example'],
  ['a final dot does not count', 'search infra.svc.corp.example. svc.corp.example.\n', 'corp.example'],
  ['a host outside of clusters has the usual one', 'search host.example\n', 'cluster.local'],
  ['nothing is the usual one', '', 'cluster.local'],
])('%s', (_, text, expected) => {
  expect(parseClusterDomain(text)).toBe(expected)
})

test('a file that is not there is the usual one', async () => {
  expect(await findClusterDomain('/nowhere/resolv.conf')).toBe('cluster.local')
})
