import { expect, test } from '@jest/globals'
import { parsePluginImage } from './plugin-image.ts'

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
