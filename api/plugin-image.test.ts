import { expect, test } from '@jest/globals'
import { isPluginImagePermitted, parsePluginImage } from './plugin-image.ts'

const digest = `sha256:${'a'.repeat(64)}`

test('parses images with a host and a digest only', () => {
  expect(parsePluginImage(`localhost:5000/a/b_c.d@${digest}`)).toEqual({ registry: 'localhost:5000', repository: 'a/b_c.d', digest })
  for (const image of [
    `app@${digest}`,
    'r.example/app:v1',
    `r.example/app:v1@${digest}`,
    `r.example/App@${digest}`,
    `r.example/../x@${digest}`,
    `r.example/a@${digest}0`,
    `r.example/@${digest}`,
  ])
    expect(parsePluginImage(image)).toBeUndefined()
})

test('permits a registry, a repository and what is below it', () => {
  const of = (...prefixes: string[]) => isPluginImagePermitted(`r.example/team/app@${digest}`, prefixes)
  expect([of('r.example'), of('r.example/team'), of('x', 'r.example/team/app')]).toEqual([true, true, true])
  expect([of(), of('r.exampl'), of('r.example/tea'), of('r.example/team/app/x'), of('r.example/team/ap')]).toEqual([false, false, false, false, false])
})
