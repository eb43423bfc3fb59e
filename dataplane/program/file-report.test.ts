import { expect, test } from '@jest/globals'
import { createFileReport } from './file-report.ts'

test('problems of the config file are logged once each, and so are their solutions', () => {
  const lines: string[] = []
  const write =
    (level: string) =>
    (message: string, { problem = '', error = '' }: Readonly<Record<string, unknown>> = {}) =>
      void lines.push(`${level} ${message} ${String(problem)}${String(error)}`.trim())
  const report = createFileReport({ info: write('info'), warn: write('warn'), error: write('error') }, 'gateway.yaml')
  const taken = (): string[] => lines.splice(0)

  report.warn({ warnings: ['f:1:1: a: cannot work'], notes: [] })
  expect(taken()).toEqual(['warn part of the config file cannot work f:1:1: a: cannot work'])
  report.failed({ problems: ['f:2:1: b: unknown field', 'f:3:1: c: is missing'] })
  expect(taken()).toEqual([
    'error config file not usable; its last good version stays f:2:1: b: unknown field',
    'error config file not usable; its last good version stays f:3:1: c: is missing',
  ])
  // The second problem moved to another line.
  report.failed({ problems: ['f:4:1: c: is missing'] })
  expect(taken()).toEqual(['info config file: problem solved f:2:1: b: unknown field'])
  report.reloaded({ warnings: ['f:1:1: a: cannot work'], notes: [] }, 7)
  expect(taken()).toEqual(['info config file: problem solved f:4:1: c: is missing', 'info config file reloaded'])
  report.reloaded({ warnings: [], notes: [] }, 8)
  expect(taken()).toEqual(['info config file reloaded', 'info config file: problem solved f:1:1: a: cannot work'])
  report.reloaded({ warnings: [], notes: ['f:1:1: listen: port 4000 accepts requests'] }, 9)
  expect(taken()).toEqual(['info config file reloaded', 'warn a port has no client authentication f:1:1: listen: port 4000 accepts requests'])
  report.reloaded({ warnings: [], notes: [] }, 10)
  expect(taken()).toEqual(['info config file reloaded', 'info config file: problem solved f:1:1: listen: port 4000 accepts requests'])
})
