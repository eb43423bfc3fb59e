import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { clients, features, PAGE, readResults, type Cell } from './clients.ts'
import { renderPage } from './page.ts'
import { vendors } from './providers/server.ts'

const results = readResults()
const cells = Object.entries(results).flatMap(([client, { providers }]) =>
  Object.entries(providers).flatMap(([provider, row]) =>
    Object.entries(row).map(([feature, cell]): readonly [string, Cell] => [`${client}, ${provider}, ${feature}`, cell]),
  ),
)

describe('the page of clients and providers', () => {
  test('is what the committed results say; `UPDATE=1 make e2e PARTS=llm-clients` writes both', () => {
    expect(readFileSync(PAGE, 'utf8')).toBe(renderPage(results))
  })

  test('has a cell for each client, provider and feature', () => {
    expect(Object.keys(results)).toEqual(Object.keys(clients))
    for (const { providers } of Object.values(results)) {
      expect(Object.keys(providers)).toEqual(vendors.map(({ name }) => name))
      for (const row of Object.values(providers)) expect(Object.keys(row)).toEqual([...features])
    }
  })

  test('has no failure, and a reason for each cell that does not work', () => {
    for (const [place, { outcome, reason }] of cells) {
      expect({ place, outcome, reason }).not.toMatchObject({ outcome: 'fails' })
      if (outcome !== 'works') expect({ place, reason }).toEqual({ place, reason: expect.stringMatching(/\w{3}/) })
    }
  })
})
