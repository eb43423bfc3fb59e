import { execFileSync } from 'node:child_process'
import { expect, test } from '@jest/globals'
import { hashFormats } from '#api/credentials/htpasswd.ts'
import { verifyPassword } from './hashes.ts'

// Requires htpasswd (apache2-utils), which uses a new salt on each run.
test.each([['-m'], ['-B', '-C', '4'], ['-s'], ['-d']])('verifies the hashes of htpasswd %s %s %s', (...options) => {
  for (const password of ['p', 'pass:word', 'exactly16bytes!!', 'ünïcödé']) {
    const line = execFileSync('htpasswd', ['-nb', ...options.filter((option) => option !== ''), 'bob', password], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const hash = line.trim().slice('bob:'.length)
    const isKnownFormat = Object.values(hashFormats).some((format) => format.test(hash))
    expect([password, isKnownFormat, verifyPassword(password, hash)]).toEqual([password, true, true])
    expect(verifyPassword(`${password}x`, hash)).toBe(options[0] === '-d' && Buffer.byteLength(password) >= 8)
  }
})
