import { expect, test } from '@jest/globals'
import { findClusterDomain, parseClusterDomain } from './cluster-domain.ts'

test.each([
  [
    'the cluster domain is the part after svc',
    'nameserver 10.96.0.10\nsearch infra.svc.corp.example svc.corp.example corp.example host.example\n',
    'corp.example',
  ],
  ['a final dot is not part of the cluster domain', 'search infra.svc.corp.example. svc.corp.example.\n', 'corp.example'],
  ['the cluster domain of a host outside of clusters is cluster.local', 'search host.example\n', 'cluster.local'],
  ['the cluster domain of an empty file is cluster.local', '', 'cluster.local'],
])('%s', (_, text, expected) => {
  expect(parseClusterDomain(text)).toBe(expected)
})

test('the cluster domain without the file is cluster.local', async () => {
  expect(await findClusterDomain('/nowhere/resolv.conf')).toBe('cluster.local')
})
