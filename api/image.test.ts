import { expect, test } from '@jest/globals'
import { CONTAINER_IMAGE_PATTERN, isImagePermitted } from './image.ts'

const digest = `sha256:${'a'.repeat(64)}`

test.each([`@${digest}`, ':v1', `:v1@${digest}`, ''])('permits a registry, a repository and what is below it, of an image that ends with "%s"', (end) => {
  const of = (...prefixes: string[]) => isImagePermitted(`r.example:5000/team/app${end}`, prefixes)
  expect([of('r.example:5000'), of('r.example:5000/team'), of('x', 'r.example:5000/team/app')]).toEqual([true, true, true])
  expect([of(), of('r.example'), of('r.example:500'), of('r.example:5000/tea'), of('r.example:5000/team/app/x')]).toEqual([false, false, false, false, false])
})

test('images of containers have the host of a registry', () => {
  const pattern = new RegExp(CONTAINER_IMAGE_PATTERN)
  const valid = ['localhost/a:e2e', 'localhost:5000/a', 'registry:5000/a/b', 'ghcr.io/a/b-c_d.e:v1.2', `ghcr.io/a@${digest}`, `ghcr.io/a:v1@${digest}`]
  expect(valid.filter((image) => !pattern.test(image))).toEqual([])
  const invalid = [
    'a',
    'a/b',
    'mcp/github:v1',
    'ghcr.io',
    'ghcr.io/',
    'ghcr.io/A',
    'ghcr.io/../a',
    'ghcr.io/a:',
    'ghcr.io/a:v1:v2',
    'ghcr.io/a@sha256:1',
    'ghcr.io/a b',
  ]
  expect(invalid.filter((image) => pattern.test(image))).toEqual([])
})
