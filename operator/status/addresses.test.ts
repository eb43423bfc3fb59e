import { expect, test } from '@jest/globals'
import type { Gateway, Service } from '../source/objects.ts'
import { addressesOf } from './addresses.ts'

const gateway = (addresses?: object[]): Gateway =>
  ({ spec: { gatewayClassName: 'proxy', listeners: [], ...(addresses ? { addresses } : {}) } }) as unknown as Gateway
const service = (spec: object, ingress?: object[]): Service => ({ spec, status: { loadBalancer: { ingress } } }) as unknown as Service

test.each<[string, Service | undefined, object[] | undefined, string[]]>([
  ['a Gateway without Service', undefined, undefined, []],
  ['a load balancer that has no address yet', service({ type: 'LoadBalancer', clusterIPs: ['10.0.0.1'] }), undefined, []],
  [
    'a hostname goes before the IP of the same entry',
    service({ type: 'LoadBalancer' }, [{ ip: '1.2.3.4', hostname: 'lb.example.com' }]),
    undefined,
    ['Hostname lb.example.com'],
  ],
  [
    'several entries are sorted',
    service({ type: 'LoadBalancer' }, [{ ip: '2.2.2.2' }, { ip: '1.1.1.1' }, { ip: '1.1.1.1' }]),
    undefined,
    ['IPAddress 1.1.1.1', 'IPAddress 2.2.2.2'],
  ],
  ['a Service of type ClusterIP', service({ type: 'ClusterIP', clusterIPs: ['fd00::1', '10.0.0.1'] }), undefined, ['IPAddress 10.0.0.1', 'IPAddress fd00::1']],
  [
    'a cluster IP and the requested addresses',
    service({ type: 'NodePort', clusterIP: '10.0.0.1' }),
    [{ type: 'IPAddress', value: '192.0.2.1' }],
    ['IPAddress 10.0.0.1', 'IPAddress 192.0.2.1'],
  ],
  ['a headless Service', service({ clusterIPs: ['None'] }), undefined, []],
])('addresses of %s', (_, live, requested, expected) => {
  expect(addressesOf(gateway(requested), live).map(({ type, value }) => `${type} ${value}`)).toEqual(expected)
})
