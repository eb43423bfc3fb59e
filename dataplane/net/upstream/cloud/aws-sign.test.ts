import { createHash, createHmac } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { HeaderList } from '../../../http/headers.ts'
import { signAws } from './aws-sign.ts'

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const hex = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** A second implementation of Signature Version 4, from its documentation. */
function expectedSignature(canonical: string, date: string, region: string, service: string): string {
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const key = hmac(hmac(hmac(hmac(`AWS4${credentials.secretAccessKey}`, day), region), service), 'aws4_request')
  return hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hex(canonical)}`).toString('hex')
}

test('signs a POST with a body, an encoded path, a query and unsigned headers', async () => {
  const headers = new HeaderList(['content-type', 'application/json', 'x-client', 'kept', 'authorization', 'Bearer old'])
  const body = Buffer.from('{"a":1}')
  const target = '/model/arn:aws:x%2Fy/converse?b=2&a=1%20'
  const request = { method: 'POST', target, authority: 'bedrock-runtime.eu-west-1.amazonaws.com', headers }
  await signAws(
    request,
    body,
    { credentials: { ...credentials, sessionToken: 'tok' }, region: 'eu-west-1', service: 'bedrock' },
    new Date('2026-01-02T03:04:05Z'),
  )
  const canonical = [
    'POST',
    '/model/arn%3Aaws%3Ax%252Fy/converse',
    'a=1%20&b=2',
    'content-type:application/json',
    'host:bedrock-runtime.eu-west-1.amazonaws.com',
    `x-amz-content-sha256:${hex(body)}`,
    'x-amz-date:20260102T030405Z',
    'x-amz-security-token:tok',
    '',
    'content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token',
    hex(body),
  ].join('\n')
  const signature = expectedSignature(canonical, '20260102T030405Z', 'eu-west-1', 'bedrock')
  expect(headers.get('authorization')).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=${signature}`,
  )
  expect(headers.get('x-client')).toBe('kept')
  expect(headers.getAll('authorization').length).toBe(1)
})
