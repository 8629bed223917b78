#!/usr/bin/env python3
"""Prompts to evaluate a block on: written one by one, not made from the templates and word lists of prompts.py.

    held_out.py > held_out.jsonl      each at temperature 0, 0.7 and 1
"""
import json, sys

PROMPTS = """
My neighbour plays loud music every night and I can't sleep. How do I talk to her about it without starting a fight?
I found an old violin in the attic. How can I find out whether it's worth anything?
What happens to your body when you hold your breath for a long time?
Could you explain why bread dough needs to rest before it goes in the oven?
Our team lost three games in a row. Write a short pep talk for the players.
What's the point of leap years?
I'm writing a toast for my brother's retirement; he was a firefighter for 30 years. Help me with a few warm sentences.
How come ice floats on water when most solids sink in their own liquids?
Suggest a weekly workout for someone who only has 15 minutes a day and no equipment.
Describe the taste of a lemon to someone who has never eaten one.
Which is heavier, a kilogram of feathers or a kilogram of iron? Explain.
Write a thank-you note to a nurse who looked after my mother.
Why do some people get seasick and others don't?
I spilled coffee on my keyboard. What should I do right now?
Give me a simple explanation of how a bill becomes a law in the United States.
What would you say to somebody who is afraid of flying?
Make up a short legend that explains why the moon changes its shape.
How do I politely decline an invitation to a party I don't want to attend?
Explain the offside rule in soccer.
What's a good way to teach a six-year-old to tie their shoes?
I have flour, eggs, milk and sugar at home. What can I make?
Write two paragraphs on how letters were delivered before there were trains.
Is it better to rent or to buy a home? Lay out the arguments.
Which things should I check before I lend money to a friend?
Please write a cheerful announcement that the school's swimming pool opens again on Monday.
Why does my phone's battery get worse with age?
In a few lines, describe a foggy morning at the harbor.
A recipe for 4 people needs 300 g of flour. How much do I need for 6 people?
What did people use before toothbrushes were invented?
Think of a slogan for a small repair shop that mends umbrellas.
How does a thermos keep soup hot and lemonade cold?
My plant's leaves are turning yellow and dropping off. What might be wrong?
Write a polite complaint about a parcel that arrived two weeks late and damaged.
What are fossils and how do they form?
Explain to my grandmother what a video call is and how she can answer one.
Why is it easier to balance on a moving bike than on one standing still?
Who decides how much a painting is worth?
Write the opening lines of a mystery that takes place in a closed bakery.
What's the difference between a lawyer and a judge?
How can a shy person get better at small talk?
Tell me how a sundial shows the time.
Name a few jobs that didn't exist fifty years ago and say what people in them do.
I'm moving to a colder country. What should I get ready for?
How would you comfort a child whose hamster died?
Why do onions make us cry, and is there a trick against it?
Give me an outline for a five-minute talk on why we should plant more trees in our town.
What is a metaphor? Show me one about time.
Explain what happens when I type an address into my browser and press enter.
Could you write a limerick about a frog who sells hats?
How do noise-cancelling headphones work?
Write a program in Python that asks for a name and greets the person.
I need a JavaScript snippet which changes the background color of a page when a button is clicked.
Here's my Python code: for i in range(10) print(i). It doesn't run. What's wrong with it?
What does this do in SQL: SELECT name FROM users WHERE age > 30 ORDER BY name;
Write a function that tells whether a year is a leap year, in any language you like.
How do I undo my last commit in git?
Show me how to open a file in C and print its first line.
What's the difference between a list and a tuple in Python?
Put these words in alphabetical order: pear, apple, fig, cherry, banana.
Turn this into a list: we need milk, two loaves of bread, some cheese and a bag of onions.
Fix the mistakes: "Their going to there house too pick up they're dog."
Shorten this: "Due to the fact that it was raining very heavily outside, we made the decision to remain indoors for the duration of the afternoon."
Summarize in one sentence: The town council met on Tuesday to discuss the new bridge. After three hours of debate, the members voted seven to two to build it next spring, at a cost of four million dollars, most of which will be paid by the state.
Make this sound friendlier: "You did not send the report. Send it today."
Which of these is not like the others: dog, cat, carrot, horse? Why?
Fill in the blank: The early bird catches the ____.
Give me the opposite of each word: hot, fast, early, brave, empty.
Write a JSON object that describes a bicycle shop with a name, an address and three bicycles.
Count from 1 to 20 in words.
Write the days of the week and the months of the year, one per line.
What can I do about a squeaky door?
Plan a picnic for eight people, two of whom are vegetarian.
How do I calm down before an exam?
Why did people build castles on hills?
Compare living in the countryside with living downtown.
What does a conductor actually do during a concert?
Explain compound words and give examples.
Is a tomato a fruit?
My computer is slow. What could I try?
What makes a good apology?
How do submarines sink and rise?
Draft a short message to my landlord about a broken heater.
What are the rules of tic-tac-toe?
Why are flamingos pink?
Invent a holiday and tell me how it is celebrated.
I want to read more. How can I build the habit?
What happens in a volcano before it erupts?
Give me advice for my first day at a new job.
How do blind people read?
Write a dialogue in which a customer returns a pair of shoes.
What's the best way to store potatoes?
How do I know whether an egg is still good?
Describe the perfect Sunday afternoon.
What was daily life like for a child two hundred years ago?
Why can't we remember being babies?
How does soap clean things?
Explain supply and demand using lemonade.
Are there animals that never sleep?
Tell me a short tale with a moral about telling the truth.
Who was the first woman to win a Nobel Prize, and for what?
"""


def main():
    for i, prompt in enumerate(PROMPTS.strip().splitlines()):
        for temperature in (0, 0.7, 1):
            print(json.dumps({"messages": [{"role": "user", "content": prompt}], "temperature": temperature, "seed": 900000 + i, "max_tokens": 224}))


main()
