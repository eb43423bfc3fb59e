import { expect, test } from '@jest/globals'
import { isTrustDomainOpen, readTrustDomain } from './mesh.ts'

test.each([
  ['a trust domain is read', 'defaultConfig: {}\ntrustDomain: corp.example\n', 'corp.example'],
  ['settings without one say nothing', 'defaultConfig: {}\n', undefined],
  ['an empty one says nothing', 'trustDomain: ""\n', undefined],
  ['one that is no text says nothing', 'trustDomain: {a: b}\n', undefined],
  ['what is not YAML says nothing', 'a: [', undefined],
  ['no settings say nothing', undefined, undefined],
])('%s', (_, text, expected) => {
  expect(readTrustDomain(text)).toBe(expected)
})

test.each([
  ['no mesh', {}, false],
  ['a mesh of the class without one', { class: { mesh: {} } }, true],
  ['one of the class counts for the Gateway', { class: { mesh: { trustDomain: 'a' } }, gateway: { mesh: {} } }, false],
  ['an empty one does not count', { gateway: { mesh: { trustDomain: '' } } }, true],
])('the mesh is asked for its trust domain: %s', (_, parameters, expected) => {
  expect(isTrustDomainOpen(parameters)).toBe(expected)
})
