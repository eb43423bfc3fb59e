import { describe, expect, test } from '@jest/globals'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { showChanges, showObjects } from './show.ts'
import { CASES, renderCase } from './testing.ts'

/**
 * testdata/<case>/in.yaml -> out.yaml: for `default` every object in full, for other cases what differs from it. The first line of
 * in.yaml says what the case shows. UPDATE_GOLDEN=1 writes out.yaml anew; read the difference before you commit it.
 */
const isUpdating = process.env['UPDATE_GOLDEN'] === '1'
if (isUpdating && process.env['CI'] === 'true') throw new Error('goldens are not written in CI')
if (isUpdating) for (const name of readdirSync(CASES)) if (!existsSync(join(CASES, name, 'in.yaml'))) rmSync(join(CASES, name), { recursive: true })

describe('the objects of a Gateway', () => {
  test.each(readdirSync(CASES).toSorted())('%s', async (name) => {
    const result = await renderCase(name)
    expect(await renderCase(name)).toEqual(result)
    const actual = name === 'default' ? showObjects(result) : showChanges(await renderCase('default'), result)
    const output = join(CASES, name, 'out.yaml')
    if (isUpdating) writeFileSync(output, actual)
    expect(actual).toBe(readFileSync(output, 'utf8'))
  })
})
