import { expect, test } from '@jest/globals'
import { workloadsOf } from './workloads.ts'

test('an address is listed once, with every Service port that leads to it', () => {
  const services = [
    {
      key: 'shop/web',
      ports: [
        {
          port: 80,
          endpoints: [
            { address: '10.0.0.1', port: 8080, zone: 'a' },
            { address: '10.0.0.2', port: 8080, draining: true },
          ],
        },
        { port: 81, endpoints: [{ address: '10.0.0.1', port: 8081 }] },
      ],
    },
    { key: 'shop/api', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 9090 }] }] },
    { key: 'shop/none', ports: [{ port: 80, endpoints: [] }] },
  ]
  expect(workloadsOf(services)).toEqual([
    { address: '10.0.0.1', zone: 'a', services: ['shop/web:80 -> 8080', 'shop/web:81 -> 8081', 'shop/api:80 -> 9090'] },
    { address: '10.0.0.2', draining: true, services: ['shop/web:80 -> 8080'] },
  ])
  expect(workloadsOf([])).toEqual([])
})
