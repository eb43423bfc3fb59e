import { describe, expect, test } from '@jest/globals'
import { functionDocs, variableDocs } from './catalog.ts'
import { anywhere } from './environment.ts'
import { listNames } from './functions/index.ts'
import { compilePermissive } from './program.ts'

describe('the catalog of the expression language', () => {
  test('describes every variable, with the phases that have it', () => {
    expect([...(anywhere.variables ?? [])].filter((name) => !variableDocs.some((doc) => doc.name.split('.')[0] === name))).toEqual([])
    expect(variableDocs.filter(({ phases }) => phases.length === 0)).toEqual([])
    expect(variableDocs.find(({ name }) => name === 'llmRequest')?.phases).toEqual(['llm'])
  })

  test.each([false, true])('describes every function of the library (methods: %s)', (isMethod) => {
    const documented = new Set(functionDocs.filter((doc) => doc.isMethod === isMethod).map(({ name }) => name))
    expect([...listNames(isMethod)].filter((name) => !documented.has(name))).toEqual([])
  })

  test('contains no function that does not exist', () => {
    const unknown = functionDocs.filter(({ signature }) => {
      const call = signature.replace(/^x\./, 'request.path.').replace(', …', '').replace('e.field', 'request.path')
      const [, callee = '', list = ''] = /^(.*)\((.*)\)$/.exec(call) ?? []
      const names = list === '' ? [] : list.split(', ')
      // Names of loop variables stay; other arguments become values.
      const args = names.map((name, index) => (/^[vki]$/.test(name) && index < names.length - 1 ? name : name === 'request.path' ? name : '"a"'))
      const { problems } = compilePermissive(`${callee}(${args.join(', ')})`, anywhere)
      return problems.some(({ message }) => /^unknown (?:function|method)/.test(message))
    })
    expect(unknown).toEqual([])
  })

  test('names each function once', () => {
    const keys = functionDocs.map(({ name, isMethod }) => `${isMethod ? 'x.' : ''}${name}`)
    expect(new Set(keys).size).toBe(keys.length)
  })
})
