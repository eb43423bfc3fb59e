import { expect, test } from '@jest/globals'
import { isTrustDomainOpen, readTrustDomain } from './mesh.ts'

test.each([
  ['a trust domain is read', 'defaultConfig: {}\ntrustDomain: corp.example\n', 'corp.example'],
  ['settings without a trust domain are read as undefined', 'defaultConfig: {}\n', undefined],
  ['an empty trust domain is read as undefined', 'trustDomain: ""\n', undefined],
  ['a trust domain that is not a string is read as undefined', 'trustDomain: {a: b}\n', undefined],
  ['a text that is not YAML is read as undefined', 'a: [', undefined],
  ['missing settings are read as undefined', undefined, undefined],
])('%s', (_, text, expected) => {
  expect(readTrustDomain(text)).toBe(expected)
})

test.each([
  ['parameters without mesh', {}, false],
  ['a mesh of the class without a trust domain', { class: { mesh: {} } }, true],
  ['a trust domain of the class, used for the Gateway', { class: { mesh: { trustDomain: 'a' } }, gateway: { mesh: {} } }, false],
  ['an empty trust domain', { gateway: { mesh: { trustDomain: '' } } }, true],
])('whether the trust domain is read from the mesh is right for %s', (_, parameters, expected) => {
  expect(isTrustDomainOpen(parameters)).toBe(expected)
})
