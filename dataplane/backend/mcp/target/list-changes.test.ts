import { describe, expect, test } from '@jest/globals'
import type { ResolvedMcpOpenApi } from '#gen/config/types.ts'
import { ListChanges } from './list-changes.ts'
import { announceChanges, type McpConfig, type Target } from './target.ts'

const apiOf = (definition: string, title = 'T'): ResolvedMcpOpenApi => ({
  title,
  version: '1',
  path: '',
  tools: [{ name: 'a', definition, method: 'GET', path: '/', parameters: [] }],
})

/** The parts of a config that matter here. */
function configOf(api: ResolvedMcpOpenApi | undefined, changes: ListChanges): McpConfig {
  const targets = api === undefined ? [] : [{ name: 'a', openapi: { api, changes } } as Partial<Target> as Target]
  return { targets, targetOf: new Map(targets.map((target) => [target.name, target])) } as Partial<McpConfig> as McpConfig
}

/** What a session hears about the change from `before` to `after`. */
function eventsOf(before: ResolvedMcpOpenApi, after: ResolvedMcpOpenApi | undefined): string[] {
  const changes = new ListChanges()
  const events: string[] = []
  changes.listen({ onChange: () => events.push('change'), onEnd: () => events.push('end') })
  changes.listen({ onChange: () => events.push('removed'), onEnd: () => events.push('removed') })()
  announceChanges(configOf(before, changes), configOf(after, changes))
  return events
}

describe('announceChanges', () => {
  const before = apiOf('{}')
  test.each([
    ['the same version', before, []],
    ['the same tools', apiOf('{}', 'New'), []],
    ['a changed tool', apiOf('{"name":"a"}'), ['change']],
    ['no target', undefined, ['end']],
  ])('notifies sessions of %s as expected', (_, after, events) => expect(eventsOf(before, after)).toEqual(events))
})
