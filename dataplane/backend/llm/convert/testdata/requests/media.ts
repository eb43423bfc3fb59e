import type { RequestRows } from './row.ts'

const pdf = 'data:application/pdf;base64,QQ=='
const completionsFiles = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'read' },
        { type: 'file', file: { filename: 'a.pdf', file_data: pdf } },
        { type: 'file', file: { filename: 'b.txt', file_data: 'aGk=' } },
      ],
    },
  ],
}
const zip = { messages: [{ role: 'user', content: [{ type: 'file', file: { filename: 'a.zip', file_data: 'data:application/zip;base64,QQ==' } }] }] }
const messagesFiles = {
  max_tokens: 9,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'QQ==' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'inner' }] } },
        { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'found' }] },
      ],
    },
  ],
}
const result = {
  max_tokens: 9,
  messages: [
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'i',
          content: [
            { type: 'text', text: 'seen' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'QQ==' } },
            { type: 'document', title: 'a', source: { type: 'base64', media_type: 'application/pdf', data: 'QQ==' } },
          ],
        },
        { type: 'text', text: 'and?' },
      ],
    },
  ],
}

/** Expected conversions of files, documents and images. */
export const mediaRows: RequestRows = {
  'Chat Completions -> Messages: files become documents': {
    from: 'completions',
    to: 'messages',
    body: completionsFiles,
    has: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'read' },
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'QQ==' }, title: 'a.pdf' },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' }, title: 'b.txt' },
          ],
        },
      ],
    },
  },
  'Chat Completions -> Messages: a file that Claude does not read is rejected': {
    from: 'completions',
    to: 'messages',
    body: zip,
    error: 'unsupported conversion: messages[0].content[0]: this provider reads PDF and text files, not application/zip',
  },
  'Chat Completions -> Converse: files become documents': {
    from: 'completions',
    to: 'converse',
    body: completionsFiles,
    has: {
      messages: [
        {
          role: 'user',
          content: [
            { text: 'read' },
            { document: { format: 'pdf', name: 'a', source: { bytes: 'QQ==' } } },
            { document: { format: 'txt', name: 'b', source: { bytes: 'aGk=' } } },
          ],
        },
      ],
    },
  },
  'Chat Completions -> Converse: a file of an unknown type is rejected': {
    from: 'completions',
    to: 'converse',
    body: zip,
    error: 'unsupported conversion: messages[0].content[0]: a file must be one of',
  },
  'Messages -> Chat Completions: documents become files and text': {
    from: 'messages',
    to: 'completions',
    body: messagesFiles,
    has: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'file', file: { filename: 'a.pdf', file_data: pdf } },
            { type: 'text', text: 'hi' },
            { type: 'text', text: 'inner' },
            { type: 'text', text: 't\ns\nfound' },
          ],
        },
      ],
    },
  },
  'Messages -> Converse: documents are converted': {
    from: 'messages',
    to: 'converse',
    body: messagesFiles,
    has: {
      messages: [
        {
          role: 'user',
          content: [
            { document: { format: 'pdf', name: 'a', source: { bytes: 'QQ==' } } },
            { document: { format: 'txt', name: 'document', source: { bytes: 'aGk=' } } },
            { text: 'inner' },
            { text: 't\ns\nfound' },
          ],
        },
      ],
    },
  },
  'Messages -> Chat Completions: images and documents of a tool result go into the message of the user after it': {
    from: 'messages',
    to: 'completions',
    body: result,
    has: {
      messages: [
        { role: 'tool', tool_call_id: 'i', content: 'seen' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Files in the result of tool call i:' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,QQ==' } },
            { type: 'file', file: { filename: 'a', file_data: pdf } },
            { type: 'text', text: 'and?' },
          ],
        },
      ],
    },
  },
  'Messages -> Converse: images and documents of a tool result stay in it': {
    from: 'messages',
    to: 'converse',
    body: result,
    has: {
      messages: [
        {
          role: 'user',
          content: [
            {
              toolResult: {
                toolUseId: 'i',
                content: [
                  { text: 'seen' },
                  { image: { format: 'png', source: { bytes: 'QQ==' } } },
                  { document: { format: 'pdf', name: 'a', source: { bytes: 'QQ==' } } },
                ],
              },
            },
            { text: 'and?' },
          ],
        },
      ],
    },
  },
}
