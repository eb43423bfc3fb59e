import { describe, expect, test } from '@jest/globals'
import { ProxyBackend, ProxyPolicy } from '#gen/v1alpha1/models.ts'

describe('the generated models', () => {
  const spec = { targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g' }], traffic: { timeouts: { request: '1s' } } }

  test('set kind and apiVersion and serialize to plain JSON', () => {
    const policy = new ProxyPolicy({ metadata: { name: 'p' }, spec })
    expect(policy.toJSON()).toEqual({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyPolicy', metadata: { name: 'p' }, spec })
    expect(ProxyPolicy.is(policy)).toBe(true)
    expect(ProxyBackend.is(policy)).toBe(false)
  })

  test('accept a valid object', () => {
    expect(() => new ProxyPolicy({ metadata: { name: 'p' }, spec }).validate()).not.toThrow()
  })

  test.each<[string, object, string]>([
    ['an unknown field', { ...spec, network: {} }, 'additional properties'],
    ['two fields of which exactly one is allowed', { ...spec, targetSelectors: [] }, 'oneOf'],
    ['a value out of bounds', { ...spec, traffic: { directResponse: { status: 1 } } }, '>= 200'],
  ])('reject %s', (_, wrong, gist) => {
    const policy = new ProxyPolicy({ metadata: { name: 'p' }, spec: wrong })
    expect(() => policy.validate()).toThrow(gist)
  })
})
